"""Signals: what speaks for a record in a search. Pure functions of values, no I/O."""
