"""Long-term memory for a LangGraph supervisor and the agents it leads."""
