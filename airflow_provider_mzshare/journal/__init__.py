"""The files of journals: what segments look like, and how they are read. It travels to Spark's executors."""
