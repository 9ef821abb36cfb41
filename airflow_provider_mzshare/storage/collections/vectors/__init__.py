"""Collections whose rows change at the price of what has changed: vectors, entries, index."""
