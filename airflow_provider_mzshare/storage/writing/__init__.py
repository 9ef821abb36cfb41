"""Executes groups of ticks, for both apps: one Spark job, then a commit for each collection."""
