"""Runs one SELECT in the caller's transaction. The SELECT cannot write, and has a time limit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.base import Base
from airflow_provider_mzshare.control.catalog.database.schema_versions import VERSION_TABLE
from airflow_provider_mzshare.control.catalog.objects.flags import QUERY_TIME, query_ms
from airflow_provider_mzshare.control.relations.install import BY_NAME
from airflow_provider_mzshare.control.relations.query_errors import MAX_ROWS, TookTooLong, TooManyRows
from airflow_provider_mzshare.control.sql.durations import format_duration
from airflow_provider_mzshare.control.views.view_errors import BadQuery

_CANCELED, _READ_ONLY = "57014", "25006"
_STEPS = 10_000
"""After so many of its own instructions SQLite asks whether the time is up."""


def fetch(session: Session, text: str) -> Sequence[Sequence[Any]]:
    connection = session.connection()
    bounds = _postgres if connection.dialect.name == "postgresql" else _sqlite
    most = query_ms(session)
    try:
        with bounds(connection, most):
            # A literal may hold any character; there are no parameters.
            escaped = text.replace("%", "%%") if connection.dialect.name == "postgresql" else text
            rows = connection.exec_driver_sql(escaped).fetchmany(MAX_ROWS + 1)
    except DBAPIError as error:
        raise _told(error, most) from None
    if len(rows) > MAX_ROWS:
        raise TooManyRows
    return rows


@contextmanager
def _postgres(connection: Connection, most_ms: int) -> Iterator[None]:
    """Runs in a savepoint, whose end restores the settings: later statements may write again."""
    with connection.begin_nested() as inner:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {most_ms}")
        connection.exec_driver_sql("SET LOCAL transaction_read_only = on")
        # Relations are named with their schema: a plain name finds nothing of the catalog's own.
        connection.exec_driver_sql("SET LOCAL search_path = pg_catalog")
        yield
        inner.rollback()


@contextmanager
def _sqlite(connection: Connection, most_ms: int) -> Iterator[None]:
    raw: Any = connection.connection.dbapi_connection
    deadline = time.monotonic() + most_ms / 1000
    connection.exec_driver_sql("PRAGMA query_only = 1")
    raw.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    # Unlike PostgreSQL's, SQLite's LIKE does not tell upper from lower case.
    connection.exec_driver_sql("PRAGMA case_sensitive_like = 1")
    raw.create_function("regexp", 2, _matches, deterministic=True)
    raw.set_authorizer(_through_views)
    try:
        yield
    finally:
        # Python 3.10 cannot take an authorizer away.
        raw.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
        raw.set_progress_handler(None, 0)
        connection.exec_driver_sql("PRAGMA case_sensitive_like = 0")
        connection.exec_driver_sql("PRAGMA query_only = 0")


def _matches(pattern: str | None, text: object) -> bool | None:
    """``text ~ pattern``, in time that only grows with the text: a function that SQLite has called cannot be stopped.

    So Python's own regular expressions, which SQLAlchemy would use, are not used: some of them never end.
    """
    if pattern is None or text is None:
        return None
    found: bool = pc.match_substring_regex(pa.scalar(str(text)), pattern).as_py()
    return found


def _through_views(action: int, table: str | None, column: str | None, _database: str | None, view: str | None) -> int:
    """Let queries read the catalog's own tables only through our views.

    For ``count(*)`` SQLite names no column, and then not the view either: so a read without a column is allowed.
    """
    own = table in Base.metadata.tables or (table or "").startswith(("sqlite_", VERSION_TABLE))
    if action == sqlite3.SQLITE_READ and own and column and view not in BY_NAME:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _told(error: DBAPIError, most_ms: int) -> Exception:
    """Errors of the query are reported to the user; errors of the database are left to the catalog."""
    text = (str(error.orig).strip().splitlines() or ["?"])[0]
    state = getattr(error.orig, "sqlstate", None)
    if state == _CANCELED or text == "interrupted":
        return TookTooLong(format_duration(most_ms), QUERY_TIME)
    own = (
        isinstance(error, (ProgrammingError, DataError, IntegrityError)) or state == _READ_ONLY or "prohibited" in text
    )
    if own or (isinstance(error, OperationalError) and isinstance(error.orig, sqlite3.Error) and "locked" not in text):
        if "user-defined function" in text:
            return BadQuery("the pattern after ~ cannot be read", hint="a regular expression without look-around")
        return BadQuery(f"the catalog's database cannot answer this: {text}", hint="docs/reference/relations.md")
    return error
