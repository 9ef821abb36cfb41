"""Envelopes: what the records of a table mean for its rows. They know no connector, no format, nothing of control."""
