"""One SQLite file: who writes, who reads, where it lies."""
