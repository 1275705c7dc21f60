"""What happened, to what, by whom, why."""
