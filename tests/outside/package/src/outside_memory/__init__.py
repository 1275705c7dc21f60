"""A store and a recipe written outside supervisor_memory."""
