"""Maintenance of a store: edit, forget, compact, embed again, erase, and the queue of events."""
