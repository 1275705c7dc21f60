"""The audit log: what happened to which record, by whom and why."""
