"""Before a search: whether to recall at all, and the query."""
