"""How a memory is put together from its settings, and the log lines it leaves."""
