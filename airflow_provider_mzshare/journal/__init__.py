"""The files of journals: what segments look like, and how they are read. What reads them travels to Spark's executors."""
