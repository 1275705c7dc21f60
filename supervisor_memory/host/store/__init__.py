"""Records as a LangGraph store, and the guard around one."""
