"""Carries statements out: upstreams are asked first, then one transaction does all, and results say what was done."""
