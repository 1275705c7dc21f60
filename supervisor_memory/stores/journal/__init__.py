"""A journal around a store that may be out of reach."""
