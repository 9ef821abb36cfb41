"""A catalog in an event loop: found without blocking, used in a thread, and always closed."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.errors import CatalogUnreachable, UnknownConnection
from airflow_provider_mzshare.hooks.base import DEFAULT_CONN_ID
from airflow_provider_mzshare.hooks.connections import to_connection
from airflow_provider_mzshare.hooks.settings import settings_of
from airflow_provider_mzshare.settings import Settings

MIN_INTERVAL = 0.1
"""The shortest pause between two looks at a catalog, whatever a trigger asks for."""

BACKOFF_SECONDS = 60.0
"""The longest pause between two attempts to reach a catalog."""

Found = TypeVar("Found")


async def find_settings(conn_id: str) -> Settings:
    """Settings as the hook finds them, by Airflow's asynchronous calls: others block the triggerer's loop, or fail."""
    try:
        found: Any = await BaseHook.aget_connection(conn_id) if _answers_async() else BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if conn_id == DEFAULT_CONN_ID:
            return Settings.from_environment()
        raise UnknownConnection(conn_id) from None
    # Airflow's own model, which is used outside of tasks and triggers, has no asynchronous version of this.
    extra = await found.aextra_dejson() if hasattr(found, "aextra_dejson") else found.extra_dejson
    return settings_of(to_connection(conn_id, found, extra))


def _answers_async() -> bool:
    """False in ``dag.test()``: it runs a trigger in its own loop, without asynchronous access to stored connections."""
    runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
    comms = getattr(runner, "SUPERVISOR_COMMS", None)
    return comms is None or hasattr(comms, "asend")


def backoff(interval: float, failures: int) -> float:
    """The pause after so many failures in a row; without failures, the ordinary pause."""
    pause = max(interval, MIN_INTERVAL)
    return max(pause, min(BACKOFF_SECONDS, pause * 2 ** min(failures, 16))) if failures else pause


class LoopCatalog:
    """One catalog for one event loop: one call at a time, each in a thread.

    A cancelled call goes on in its thread to its end; only then is the catalog closed.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._catalog: Catalog | None = None
        self._lock = threading.Lock()
        self._closed = False

    async def ask(self, question: Callable[[Catalog], Found]) -> Found:
        return await asyncio.to_thread(self._ask, question)

    def _ask(self, question: Callable[[Catalog], Found]) -> Found:
        with self._lock:
            if self._closed:
                raise CatalogUnreachable("the catalog was closed")
            if self._catalog is None:
                # In the thread, and not in the loop or at a DAG's parse: the first call loads the database's driver.
                from airflow_provider_mzshare.control.composition import open_catalog

                self._catalog = open_catalog(self._url)
            return question(self._catalog)

    def close_soon(self) -> None:
        """Returns at once, without waiting for a call that is still running."""
        asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._catalog is not None:
                self._catalog.close()
