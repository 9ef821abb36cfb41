"""Writes journals: segments, and what makes their messages count."""
