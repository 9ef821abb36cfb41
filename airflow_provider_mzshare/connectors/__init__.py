"""Upstreams, a folder for each kind: how one is asked, checked and read. Knows neither tables nor the catalog."""
