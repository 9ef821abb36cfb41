"""What becomes of a table: how it comes into its log, how it is read, checked, verified, repaired."""
