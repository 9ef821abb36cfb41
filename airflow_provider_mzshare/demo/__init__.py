"""``make demo``: a table is added to a running source by its DAG, on embedded parts, and the result is measured."""
