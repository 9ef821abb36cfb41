"""How apps run: jobs, launchers, Spark sessions and their jars."""
