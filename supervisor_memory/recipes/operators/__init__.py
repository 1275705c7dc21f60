"""Operators that several recipes share: small functions that make an operator of their arguments."""
