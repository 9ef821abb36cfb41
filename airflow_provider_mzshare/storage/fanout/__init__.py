"""The fan-out: one batch of records in, rows of every member table out. Travels to Spark's executors.

Imports the standard library, pyarrow, numpy and ``types.schema``, nothing else: an executor's Python has no more.
"""
