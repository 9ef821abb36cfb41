"""Opens the upstream that a source's spec names, through its connection: each kind knows how."""

from __future__ import annotations

from typing import cast

from airflow_provider_mzshare.connectors.base import (
    REQUEST_SECONDS,
    Connector,
    Journals,
    LeavingConnector,
    Records,
    Upstream,
)
from airflow_provider_mzshare.connectors.connections import Connection, ConnectionStore
from airflow_provider_mzshare.connectors.registry import absence, kind_of, kinds
from airflow_provider_mzshare.core.specs import SourceSpec


def connect(
    connection: Connection | None, spec: SourceSpec, incarnation: str | None = None, *, journals: Journals | None = None
) -> Connector:
    """:param incarnation: of a source that is made already: for some kinds the spec alone does not say who they are.
    :param journals: where they are; needed for kinds that are read from one.
    """
    return kind_of(spec).connect(spec, connection, incarnation, journals)


def connection_of(connections: ConnectionStore, spec: SourceSpec) -> Connection | None:
    """None for a kind that needs none."""
    name = connection_name(spec)
    return None if name is None else connections.get(name)


def connection_name(spec: SourceSpec) -> str | None:
    return kind_of(spec).connection_name(spec)


def open_upstream(
    connections: ConnectionStore,
    spec: SourceSpec,
    incarnation: str | None = None,
    *,
    timeout: float = REQUEST_SECONDS,
    journals: Journals | None = None,
) -> Upstream:
    """:param incarnation: of the source, if it is made already; leave it out only to make a new one."""
    connection = connection_of(connections, spec)
    return connect(connection, spec, incarnation, journals=journals).upstream(timeout=timeout)


def open_records(
    connections: ConnectionStore, spec: SourceSpec, incarnation: str, *, journals: Journals | None = None
) -> Records:
    return connect(connection_of(connections, spec), spec, incarnation, journals=journals).records()


def release(connections: ConnectionStore, spec: SourceSpec, incarnation: str) -> str:
    """Take away what the upstream of a dropped source keeps for it, and say what that was; empty if there is nothing.

    What a kind that is not installed here has left is for whoever has that kind.
    """
    if absence(spec) is not None or not kind_of(spec).is_recorded:
        return ""
    connector = kind_of(spec).connect(spec, connection_of(connections, spec), incarnation)
    return cast("LeavingConnector", connector).release()


def reach(connections: ConnectionStore, name: str) -> str:
    """Log in through a connection and say what answered. A type that nobody takes is refused by the first kind."""
    connection = connections.get(name)
    found = [kind for kind in kinds() if kind.takes_connection]
    return next((kind for kind in found if connection.conn_type in kind.conn_types), found[0]).reach(connection)
