"""Journals as upstreams: what was pushed into a source is read by its tables, as the records of a topic are.

What travels to Spark's executors (``KIND.executor_modules``) imports the standard library and pyarrow.
"""
