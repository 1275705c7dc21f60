"""Named choices of operators for the six stages."""
