"""The tick log in the catalog: ticks, tables that are brought up to it, backfills and their queue."""
