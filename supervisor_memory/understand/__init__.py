"""What one text says: pure functions of it."""
