"""Records in the memory of this process, and in one JSON file."""
