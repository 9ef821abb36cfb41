"""Statements carried out: upstreams are asked, one transaction does all, answers say what was done."""
