"""Decisions of a person about memory: proposals, earlier versions, quarantines and roll-backs."""
