"""The fan-out: one batch of records in, rows of every member table out. Travels to Spark's executors.

Imports the standard library, pyarrow, numpy, the formats and plain values of ``core`` and ``connectors``, nothing else:
an executor's Python has no more. How bytes become values is the formats' business; here is what they all share.
"""
