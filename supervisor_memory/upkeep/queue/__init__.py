"""What was observed and is not memory yet: captured, kept, read in the background."""
