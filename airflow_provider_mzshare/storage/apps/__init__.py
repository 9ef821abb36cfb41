"""The two apps: ingestion, which mints and executes ticks, and backfills; their leases and their loops."""
