"""Ordinary chatter with a few statements worth keeping."""
