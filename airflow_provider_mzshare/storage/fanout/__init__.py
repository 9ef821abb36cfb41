"""The fan-out: one batch of records in, rows of every member table out. Travels to Spark's executors.

Imports only the standard library, pyarrow, numpy, the formats and plain values of ``core`` and ``connectors``, because
an executor's Python has nothing else. Formats turn bytes into values; this package has what all formats share.
"""
