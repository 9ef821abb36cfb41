"""Servers for demos and tests that live and die with the process that started them; never for production data."""
