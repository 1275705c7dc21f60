"""Judges: how a candidate relates to the records it may be about."""
