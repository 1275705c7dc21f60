"""Puts a memory together from its settings, and writes its log lines."""
