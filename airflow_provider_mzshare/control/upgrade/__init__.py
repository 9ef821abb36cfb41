"""Moves legacy sources to sources with tables: definitions change, data does not."""
