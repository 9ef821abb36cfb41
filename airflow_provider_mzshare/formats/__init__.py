"""Formats: how the bytes of a record become values, one module and one line of the registry each.

A format knows records and types; it knows neither tables, ticks, hashes nor where records come from. All but the
registry travels to Spark's executors, whose Python has the standard library, pyarrow and numpy, and maybe msgspec.
"""
