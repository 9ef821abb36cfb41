"""Collections: one Delta table each, how it is written, read, checked, compacted and cleaned."""
