"""Carrying statements out on the catalog: each kind of statement in a room of its own, one table that says which."""
