"""Operators: each a verb over one call of the hook."""
