"""What a search knows of a question and of each record: pure functions of values, no I/O."""
