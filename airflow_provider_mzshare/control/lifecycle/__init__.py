"""The life of a table: how it arrives in its log, how it is read, checked, verified and repaired."""
