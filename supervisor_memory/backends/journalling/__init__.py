"""What the journal is made of: entries, what waits laid over the store, replay, a copy."""
