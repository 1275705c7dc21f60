"""What two texts are to each other: pure functions of both."""
