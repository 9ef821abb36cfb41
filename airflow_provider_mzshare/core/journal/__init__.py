"""Journals: what an upstream that cannot be read twice has said, as a log with offsets. Values and rules, no input."""
