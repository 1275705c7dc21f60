"""Candidates for a note, from the store."""
