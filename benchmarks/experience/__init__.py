"""Thirty seeded faults of the demo team's tools, as data: `faults.jsonl`."""
