"""mzshare: one shared streaming read feeds any number of exact Delta tables, driven from Airflow.

``from airflow_provider_mzshare import connect`` is the door for Python.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_mzshare.client import MzShare as MzShare
    from airflow_provider_mzshare.client import connect as connect

__version__ = "0.1.0"

_DOOR = ("connect", "MzShare")


def __getattr__(name: str) -> Any:
    """``client`` is imported only when it is used: DAG files and executors import this package too."""
    if name in _DOOR:
        return getattr(import_module(f"{__name__}.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
