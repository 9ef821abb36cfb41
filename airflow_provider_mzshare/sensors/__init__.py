"""Sensors: what a DAG can wait for."""
