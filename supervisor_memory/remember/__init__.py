"""After an agent returned: extract, compare, merge."""
