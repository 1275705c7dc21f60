"""From a turn to candidates for memory: gather, extract, leave out repeats."""
