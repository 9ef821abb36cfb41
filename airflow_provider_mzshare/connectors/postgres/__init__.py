"""Postgres as an upstream: the changes of a publication's tables, recorded in a journal through one replication slot.

What travels to Spark's executors (``KIND.executor_modules``) imports the standard library, numpy and pyarrow.
"""
