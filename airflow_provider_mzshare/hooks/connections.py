"""Connections through Airflow, inside its tasks and outside; airflow is imported only when it is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_mzshare.connectors.connections import Connection, ConnectionStore, EnvConnections
from airflow_provider_mzshare.errors import NotAuthorized, UnknownConnection

_CONFIGURED_BY = ("AIRFLOW_HOME", "AIRFLOW_CONFIG", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN")


class AirflowConnections:
    """What Airflow answers here: from its secrets backends, its metadata database, or the API of a task."""

    def get(self, name: str) -> Connection:
        found = _from_task(name) if in_task() else _from_backends(name)
        return to_connection(name, found, found.extra_dejson)


class DefaultConnections:
    """The environment first, then Airflow if it is configured: otherwise Airflow would create a home folder."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> Connection:
        try:
            return EnvConnections(self._environ).get(name)
        except UnknownConnection:
            if not is_airflow_configured(self._environ):
                raise
        return AirflowConnections().get(name)


def to_connection(name: str, found: Any, extra: Mapping[str, Any]) -> Connection:
    """A connection of Airflow as one of ours."""
    return Connection(
        name=name,
        conn_type=found.conn_type or "",
        host=found.host or None,
        port=found.port,
        login=found.login or None,
        password=found.password or None,
        schema=found.schema or None,
        extra=extra,
    )


def default_connections() -> ConnectionStore:
    return DefaultConnections()


def is_airflow_configured(environ: Mapping[str, str]) -> bool:
    if in_task() or any(environ.get(name) for name in _CONFIGURED_BY):
        return True
    home = environ.get("HOME")
    return home is not None and Path(home, "airflow", "airflow.cfg").is_file()


def in_task() -> bool:
    """Airflow sets this object in tasks, triggers and DAG parsing. There only the task SDK may be asked."""
    runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
    return getattr(runner, "SUPERVISOR_COMMS", None) is not None


def _from_task(name: str) -> Any:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError, ErrorType

    try:
        return BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise UnknownConnection(name) from None
    except AirflowRuntimeError as problem:
        if problem.error.error == ErrorType.CONNECTION_NOT_FOUND:
            raise UnknownConnection(name) from None
        raise
    except PermissionError:
        raise _denied(name) from None


def _from_backends(name: str) -> Any:
    """The SDK skips the metadata database if it does not know this process: so the command line asks the model."""
    from airflow.models.connection import Connection as Model
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return Model.get_connection_from_secrets(name)
    except AirflowNotFoundException:
        raise UnknownConnection(name) from None
    except PermissionError:
        raise _denied(name) from None


def _denied(name: str) -> NotAuthorized:
    return NotAuthorized(f"Airflow's secrets backend does not give access to connection {name!r} here")
