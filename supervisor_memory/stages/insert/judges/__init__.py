"""Judges: what a candidate is to the records that it may be about."""
