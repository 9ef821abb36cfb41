"""Carries statements out on the catalog: a module for each kind of statement, and one table of all handlers."""
