"""The tick log: its state, its rules as pure functions, and the store it needs."""
