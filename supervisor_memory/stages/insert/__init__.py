"""From a candidate to a commit: compare with what is known, decide, merge, hold for review."""
