"""What the backend over a LangGraph store is made of: items, calls, erasing."""
