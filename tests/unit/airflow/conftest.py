"""Airflow is imported here first, with a home of its own."""

import tests.support.airflow  # noqa: F401
