"""Runs one SELECT in the caller's transaction, so that it can neither write nor take for ever."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.base import Base
from airflow_provider_mzshare.control.catalog.versions import VERSION_TABLE
from airflow_provider_mzshare.control.relations.install import BY_NAME
from airflow_provider_mzshare.control.relations.problems import MAX_ROWS, MAX_SECONDS, TookTooLong, TooManyRows
from airflow_provider_mzshare.control.views.problems import BadQuery

_CANCELED, _READ_ONLY = "57014", "25006"
_QUERYS_FAULT = (ProgrammingError, DataError, IntegrityError)
_STEPS = 10_000
"""SQLite is asked so often, in its own instructions, whether its time is up."""


def fetch(session: Session, text: str) -> Sequence[Sequence[Any]]:
    connection = session.connection()
    bounds = _postgres if connection.dialect.name == "postgresql" else _sqlite
    try:
        with bounds(connection):
            # A literal may hold any character; there are no parameters.
            escaped = text.replace("%", "%%") if connection.dialect.name == "postgresql" else text
            rows = connection.exec_driver_sql(escaped).fetchmany(MAX_ROWS + 1)
    except DBAPIError as error:
        raise _told(error) from None
    if len(rows) > MAX_ROWS:
        raise TooManyRows
    return rows


@contextmanager
def _postgres(connection: Connection) -> Iterator[None]:
    """Inside a savepoint, whose end takes the settings back: what comes after may write again."""
    with connection.begin_nested() as inner:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{MAX_SECONDS}s'")
        connection.exec_driver_sql("SET LOCAL transaction_read_only = on")
        # Relations are named with their schema: a plain name finds nothing of the catalog's own.
        connection.exec_driver_sql("SET LOCAL search_path = pg_catalog")
        yield
        inner.rollback()


@contextmanager
def _sqlite(connection: Connection) -> Iterator[None]:
    raw: Any = connection.connection.dbapi_connection
    deadline = time.monotonic() + MAX_SECONDS
    connection.exec_driver_sql("PRAGMA query_only = 1")
    raw.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    # Unlike PostgreSQL's, SQLite's LIKE does not tell upper from lower case.
    connection.exec_driver_sql("PRAGMA case_sensitive_like = 1")
    raw.set_authorizer(_through_views)
    try:
        yield
    finally:
        # Python 3.10 cannot take an authorizer away.
        raw.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
        raw.set_progress_handler(None, 0)
        connection.exec_driver_sql("PRAGMA case_sensitive_like = 0")
        connection.exec_driver_sql("PRAGMA query_only = 0")


def _through_views(action: int, table: str | None, column: str | None, _database: str | None, view: str | None) -> int:
    """Tables of the catalog's own are read by our views alone, whatever a query has come to say.

    Rows that are only counted are read without a column, and then SQLite does not say through which view.
    """
    own = table in Base.metadata.tables or (table or "").startswith(("sqlite_", VERSION_TABLE))
    if action == sqlite3.SQLITE_READ and own and column and view not in BY_NAME:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _told(error: DBAPIError) -> Exception:
    """What is wrong with the query is the user's; what is wrong with the database is told by the catalog."""
    text = (str(error.orig).strip().splitlines() or ["?"])[0]
    state = getattr(error.orig, "sqlstate", None)
    if state == _CANCELED or text == "interrupted":
        return TookTooLong()
    own = (
        isinstance(error, (ProgrammingError, DataError, IntegrityError)) or state == _READ_ONLY or "prohibited" in text
    )
    if own or (isinstance(error, OperationalError) and isinstance(error.orig, sqlite3.Error) and "locked" not in text):
        return BadQuery(f"the catalog's database cannot answer this: {text}", hint="docs/reference/relations.md")
    return error
