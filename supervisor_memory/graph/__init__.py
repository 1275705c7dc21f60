"""The LangGraph side: wrapping a graph, and the tools."""
