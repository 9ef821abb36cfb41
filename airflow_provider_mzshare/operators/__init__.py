"""Operators: each is one call of the hook."""
