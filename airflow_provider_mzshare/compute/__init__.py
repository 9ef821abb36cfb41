"""COMPUTE: what runs. Jobs, launchers, Spark sessions and their jars."""
