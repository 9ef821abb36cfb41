"""What runs and what should run: the reconciler, starts and ends of apps, waits for them, status, upkeep."""
