"""Thin translators over SupervisorMemory."""
