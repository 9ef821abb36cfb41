"""What the catalog holds, as relations that any SQL client can read: definitions, statistics, statuses, queries."""
