"""What a user would run instead of the shared app, as an experienced one would write it.

Each module has ``main``, takes a ``Task`` as JSON, and appends all records of a topic to every table.
"""
