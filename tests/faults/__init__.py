"""What is done to a store, and what it promises to be afterwards; the table is in docs/faults.md."""
