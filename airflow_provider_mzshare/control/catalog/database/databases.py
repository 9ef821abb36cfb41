"""How SQLite and Postgres are opened and how their errors are told. Knows nothing of what is stored."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, InterfaceError, OperationalError

from airflow_provider_mzshare.errors import CatalogUnreachable, CatalogUnusable
from airflow_provider_mzshare.folders import make_folder
from airflow_provider_mzshare.urls import shown_url

SCHEMA = "mzshare"
"""In Postgres everything of ours is here, so that the database may be shared."""

PATIENCE_SECONDS = 30
"""How long a transaction waits for another one."""

BEGIN = "mzshare_begin"
"""Execution option: the statement that begins a transaction in SQLite."""

_URL_HINT = "sqlite:////absolute/path/catalog.db or postgresql+psycopg://user:password@host/database"

_SERVER_HINT = "check that the server runs and that MZSHARE_CATALOG names it, then run mzshare doctor"
_FILE_HINT = (
    "check that the file and its folder can be written and have free space, or set MZSHARE_HOME or MZSHARE_CATALOG"
)
_BROKEN_HINT = "restore a backup, then run mzshare catalog repair"

_PASSING_STATES = frozenset({"25P03", "25006", "0A000"})
"""Told otherwise than as a lost connection: a transaction that stood idle for too long; a server that takes no writes,
which says so either of a write or, when asked for read-write mode, as a feature that recovery does not support."""
_NO_RIGHTS = "42501"

_POSTGRES_DEFAULTS = {
    "connect_timeout": 10,
    "application_name": "mzshare",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


def parse_url(text: str) -> URL:
    """A URL that we support. A relative file name is made absolute, because apps run in other folders."""
    scheme, _separator, rest = text.partition("://")
    if scheme in ("sqlite", "sqlite+pysqlite"):
        return _file_url(rest)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise CatalogUnusable("the catalog's URL cannot be read", hint=_URL_HINT) from None
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        _check_escaped(rest)
        return url.set(drivername="postgresql+psycopg")
    backend = url.drivername.partition("+")[0]
    raise CatalogUnusable(f"a catalog cannot be kept in {backend!r}", hint=_URL_HINT)


def _file_url(rest: str) -> URL:
    """What follows ``sqlite:///`` is the file's name as it is: a folder may be called ``100%20 ? #``."""
    file = rest.removeprefix("/")
    if not rest.startswith("/") or not file or file == ":memory:":
        raise CatalogUnusable("an SQLite catalog needs a file", hint=_URL_HINT)
    return URL.create("sqlite", database=os.path.abspath(file))


def _check_escaped(rest: str) -> None:
    """An ``@`` that was not escaped ends a password too early, and the rest of it would be told as a host's name."""
    if rest.count("@") > 1:
        hint = f"write %40 for an @ in a password; {_URL_HINT}"
        raise CatalogUnusable("the catalog's URL has more than one @", hint=hint)


def render_url(url: URL) -> str:
    """With its password, as ``parse_url`` reads it."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    return url.render_as_string(hide_password=False)


def display_url(url: URL) -> str:
    """As it may be shown."""
    return shown_url(render_url(url))


def open_engine(url: URL) -> Engine:
    """An engine; no connection is made yet."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": PATIENCE_SECONDS})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    defaults = {name: value for name, value in _POSTGRES_DEFAULTS.items() if name not in url.query}
    engine = create_engine(url, connect_args=defaults, pool_pre_ping=True)
    event.listen(engine, "connect", _prepare_postgres)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver would begin transactions late, with the first write, and run the reads before it outside of them.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(BEGIN, "BEGIN"))


def _prepare_postgres(connection: Any, _record: Any) -> None:
    # A process that was stopped inside a transaction must not keep its locks for ever.
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path TO {SCHEMA}")
        cursor.execute(f"SET lock_timeout = '{PATIENCE_SECONDS}s'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{PATIENCE_SECONDS}s'")
    connection.commit()


def enable_wal(engine: Engine) -> None:
    """Kept in the file, so once is enough. SQLite's busy timeout does not cover this switch."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with closing(engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.Error as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                kind = OperationalError if isinstance(error, sqlite3.OperationalError) else DatabaseError
                raise kind("PRAGMA journal_mode=WAL", None, error) from error
            time.sleep(0.02)


def create_file(url: URL) -> None:
    """An SQLite file that only its owner can read; SQLite gives the files beside it the same mode."""
    file = Path(url.database or "")
    try:
        make_folder(file.parent)
        if not file.exists():
            file.touch(mode=0o600)
    except OSError as error:
        why = error.strerror or str(error)
        raise CatalogUnusable(f"the catalog at {display_url(url)} cannot be created: {why}", hint=_FILE_HINT) from error


def told(error: DBAPIError, url: URL) -> Exception:
    """One of our errors where the database cannot be reached; every other error unchanged."""
    where, cause = display_url(url), error.orig
    text = (str(cause).strip().splitlines() or ["connection lost"])[0]
    if isinstance(cause, sqlite3.Error):
        return _told_sqlite(error, where, text)
    lost = isinstance(error, (OperationalError, InterfaceError)) or error.connection_invalidated
    state = getattr(cause, "sqlstate", None)
    if lost or state in _PASSING_STATES:
        return CatalogUnreachable(f"the catalog at {where} does not answer: {text}", hint=_SERVER_HINT)
    if state == _NO_RIGHTS:
        return CatalogUnusable(
            f"the catalog at {where} cannot be used: {text}", hint="GRANT the missing right to the catalog's user"
        )
    return error


def _told_sqlite(error: DBAPIError, where: str, text: str) -> Exception:
    if "not a database" in text or "malformed" in text:
        return CatalogUnusable(f"the catalog at {where} cannot be read: {text}", hint=_BROKEN_HINT)
    if not isinstance(error, OperationalError) or text.startswith("no such"):
        return error
    if "locked" in text:
        return CatalogUnreachable(f"the catalog at {where} stayed locked for {PATIENCE_SECONDS} s")
    if "readonly" in text:
        return CatalogUnusable(f"the catalog at {where} cannot be written: {text}", hint=_FILE_HINT)
    return CatalogUnreachable(f"the catalog at {where} does not answer: {text}", hint=_FILE_HINT)
