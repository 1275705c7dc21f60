"""The store that langgraph.json names, in a file of its own: the server loads it under another name."""

from remembering import store

__all__ = ["store"]
