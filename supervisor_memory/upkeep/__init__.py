"""What an operator does with a whole store, now and then."""
