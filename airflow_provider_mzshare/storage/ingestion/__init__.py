"""The shared read: one streaming query, one Spark job per tick, any number of tables."""
