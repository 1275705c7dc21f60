"""German words and rules for supervisor-memory."""
