"""Compare two texts: the same, a newer statement about the same thing, or different things. Pure."""
