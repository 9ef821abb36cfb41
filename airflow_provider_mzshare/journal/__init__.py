"""The files of journals: what segments look like, and how they are read. This travels to Spark's executors."""
