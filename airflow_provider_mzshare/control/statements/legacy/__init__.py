"""Old-style sources: statements that name a source and its outputs at once, on the same ticks and tables underneath."""
