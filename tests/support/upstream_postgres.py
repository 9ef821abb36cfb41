"""A real Postgres as an upstream: databases with tables and publications, and what a user needs to read them.

Its disk is flushed, unlike that of servers for catalogs: what is committed must be there after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres import slot
from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.core.specs import SourceSpec
from airflow_provider_mzshare.embedded.process import LOOPBACK
from tests.support.postgres import OWNER, Postgres

SETTINGS = {
    "fsync": "on",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "wal_sender_timeout": "20s",
    "max_wal_size": "256MB",
}
PUBLICATION = "pub"
CONNECTION = "shop"
"""The name of the connection that sources of tests have."""


@contextmanager
def upstream_server(**settings: str) -> Iterator[Postgres]:
    """A server of its own, for who stops it or changes its settings."""
    server = Postgres(**{**SETTINGS, **settings})
    try:
        yield server.start()
    finally:
        server.remove()


class Database:
    """One database of a server. :param user: who reads it for us; the server's owner may do everything."""

    def __init__(self, server: Postgres, name: str | None = None, *, user: str = OWNER) -> None:
        self.server, self.user = server, user
        self.name = name or server.create_database()

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        """As the server's owner, in autocommit unless said otherwise."""
        options: dict[str, Any] = {"autocommit": True, **more}
        return psycopg.connect(host=LOOPBACK, port=self.server.port, user=OWNER, dbname=self.name, **options)

    def run(self, *statements: str) -> None:
        """Each in a transaction of its own."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return [tuple(row) for row in connection.execute(query.encode(), values)]

    def value(self, query: str, values: Sequence[Any] = ()) -> Any:
        return self.rows(query, values)[0][0]

    def transaction(self, *statements: str) -> None:
        """All in one."""
        with self.connect() as connection, connection.transaction():
            for statement in statements:
                connection.execute(statement.encode())

    def publish(self, *tables: str, name: str = PUBLICATION) -> None:
        """Make a publication of these tables; of all where none is named."""
        what = f"TABLE {', '.join(tables)}" if tables else "ALL TABLES"
        self.run(f"CREATE PUBLICATION {name} FOR {what}")

    def connection(self, name: str = CONNECTION) -> Connection:
        """As a source has it."""
        return Connection(name, "postgres", host=LOOPBACK, port=self.server.port, login=self.user, schema=self.name)

    def spec(self, publication: str = PUBLICATION, connection: str = CONNECTION) -> SourceSpec:
        return CONNECTORS.get("postgres").spec(connection=connection, publication=publication)

    def slots(self) -> list[str]:
        return [
            name
            for (name,) in self.rows(
                "SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database() ORDER BY 1"
            )
        ]

    def drop(self) -> None:
        """With its slots, whoever reads them."""
        query = "SELECT slot_name::text FROM pg_replication_slots WHERE database = %s"
        with self.server.connect() as connection:
            for (found,) in connection.execute(query, [self.name]).fetchall():
                slot.drop(connection, found)
        self.server.drop_database(self.name)


@contextmanager
def upstream_database(server: Postgres) -> Iterator[Database]:
    """One that goes with the block."""
    database = Database(server)
    try:
        yield database
    finally:
        database.drop()
