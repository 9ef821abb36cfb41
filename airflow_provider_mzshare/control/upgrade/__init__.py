"""Moves old-style sources to sources with tables: definitions change, data does not."""
