"""One connection for questions to a server, opened when it is needed and again after it broke."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig, connect, explained


class Session:
    """Safe from several threads: one asks at a time."""

    def __init__(self, config: PostgresConfig, purpose: str, *, timeout: float) -> None:
        self.config = config
        self._purpose, self._timeout = purpose, timeout
        self._connection: psycopg.Connection[Any] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def opened(self) -> Iterator[psycopg.Connection[Any]]:
        with self._lock, explained(self.config):
            if not self._answers():
                self._connection = connect(self.config, self._purpose, timeout=self._timeout)
            assert self._connection is not None  # it answered, or it is new
            yield self._connection

    def _answers(self) -> bool:
        """Whether the connection from before is still one: that the server was away meanwhile is no matter."""
        if self._connection is None or self._connection.closed:
            return False
        try:
            self._connection.execute("")
        except psycopg.OperationalError:
            self._connection.close()
            return False
        return True

    def row(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The one row that a query gives."""
        with self.opened() as connection:
            found = connection.execute(query.encode(), values).fetchone()
        assert found is not None  # only asked where there always is one
        return tuple(found)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
