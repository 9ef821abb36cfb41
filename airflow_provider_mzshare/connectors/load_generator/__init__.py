"""Load generators: upstreams that make their records up, as pure functions of seed, partition and offset.

What travels to Spark's executors (``KIND.executor_modules``) imports the standard library, pyarrow, numpy and, where it
is Spark's own, pyspark.
"""
