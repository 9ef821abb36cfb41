"""Backfills: bring tables up to a source's log, in groups of ticks, until they are cut over."""
