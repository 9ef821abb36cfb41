"""``make demo``: tables are added to a running source by a DAG, on embedded parts, and the result is measured."""
