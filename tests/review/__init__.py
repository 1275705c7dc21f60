"""The desk, the versions, and what is taken back."""
