"""The door to the catalog's database: transactions that read, that write, and that hold a source's lock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import settle
from airflow_provider_mzshare.control.catalog.database import databases, schema_versions
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.errors import CatalogUnreachable


class Catalog:
    """One catalog, for any number of threads. Transactions are short and never nested in one thread.

    :param url: ``sqlite:///path`` or ``postgresql+psycopg://user@host/database``.
    """

    def __init__(self, url: str) -> None:
        self._url = databases.parse_url(url)
        self._engine = databases.open_engine(self._url)
        self._reading, self._writing = _modes(self._engine)
        self._pid = os.getpid()
        self._checked = False

    @property
    def url(self) -> str:
        """With its password: to be passed to an app, never to be shown."""
        return databases.render_url(self._url)

    @property
    def display_url(self) -> str:
        return databases.display_url(self._url)

    @property
    def is_embedded(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One snapshot of everything; writes nothing."""
        self.check()
        with self._transaction(self._reading) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Committed when the block ends well, undone when it raises."""
        self.check()
        with self._transaction(self._writing) as session:
            yield session
            settle(session)

    @contextmanager
    def locked(self, source_id: ItemId) -> Iterator[tuple[Session, SourceState]]:
        """A write behind the source's lock, with the source as it is."""
        with self.write() as session:
            yield session, load_state(session, lock_source(session, source_id))

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Session]:
        self._leave_parents_connections()
        with self._errors_told(), Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise databases.told(error, self._url) from error
        except PoolTimeout as error:
            raise CatalogUnreachable(f"all connections to the catalog at {self.display_url} stayed in use") from error

    def _leave_parents_connections(self) -> None:
        if os.getpid() != self._pid:
            self._engine.dispose(close=False)
            self._pid = os.getpid()

    # ── versions ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def revision(self) -> str | None:
        """The schema's revision, or None where no catalog is. Creates no file."""
        if self._file_missing():
            return None
        with self._errors_told(), self._reading.connect() as connection:
            return schema_versions.found_revision(connection)

    def check(self) -> None:
        """Raise unless the catalog is there in the version that this code needs."""
        if not self._checked:
            schema_versions.check_revision(self.revision(), self.display_url)
            self._checked = True

    def upgrade(self, to: str = schema_versions.HEAD) -> None:
        """Create the catalog or bring it up to date; safe to run by several at once."""
        with self._errors_told():
            if self.is_embedded:
                databases.create_file(self._url)
                databases.enable_wal(self._engine)
            with self._writing.begin() as connection:
                schema_versions.migrate(connection, to)
        self._checked = False

    def ensure(self) -> None:
        """Create an embedded catalog on first use; everything else must be there already."""
        if self.is_embedded and self._is_empty():
            self.upgrade()
        self.check()

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def file(self) -> Path:
        """Of an embedded catalog."""
        return Path(self._url.database or "")

    def _file_missing(self) -> bool:
        return self.is_embedded and not self.file.exists()

    def _is_empty(self) -> bool:
        if self._file_missing():
            return True
        with self._errors_told(), self._reading.connect() as connection:
            return not inspect(connection).get_table_names()


def _modes(engine: Engine) -> tuple[Engine, Engine]:
    """Two engines over the same connections: one for transactions that read, one for those that write."""
    if engine.dialect.name == "sqlite":
        return engine, engine.execution_options(**{databases.BEGIN: "BEGIN IMMEDIATE"})
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True), engine
