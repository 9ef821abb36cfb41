"""Load generators: upstreams that make their records up, as pure functions of seed, partition and offset.

All but ``reader``, ``records`` and ``upstream`` travel to Spark's executors: they import the standard library, pyarrow,
numpy and, where it is Spark's own, pyspark.
"""
