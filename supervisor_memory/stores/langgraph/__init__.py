"""Records in the LangGraph store that the host has."""
