"""Events that are not memory yet: captured, queued, read in the background."""
