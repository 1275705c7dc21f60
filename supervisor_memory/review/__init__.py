"""What a person decides about memory: what waits, what is taken back, what is set aside."""
