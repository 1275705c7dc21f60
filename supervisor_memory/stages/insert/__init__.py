"""From a candidate to a commit: skip repeats, compare with known records, decide, merge, hold for review."""
