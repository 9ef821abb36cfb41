"""What exists, as rows: sources, tables, schemas, names, comments, settings, and what hangs on what."""
