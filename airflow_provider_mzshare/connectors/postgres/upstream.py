"""A Postgres database as an upstream: who it is, what its publication offers, how far its log reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS, Inspection, ReferenceInfo
from airflow_provider_mzshare.connectors.postgres import checks, offers
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig
from airflow_provider_mzshare.connectors.postgres.identity import Identity, slot_name
from airflow_provider_mzshare.connectors.postgres.lsn import read_lsn
from airflow_provider_mzshare.connectors.postgres.place import LANE
from airflow_provider_mzshare.connectors.postgres.ranges import boundary_of, check_begin, check_reach, oldest_of
from airflow_provider_mzshare.connectors.postgres.session import Session
from airflow_provider_mzshare.connectors.postgres.slot import look
from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start

PARTITION = 0
"""Of the journal: what one slot says has one order."""

_WHO = """
SELECT (SELECT system_identifier FROM pg_control_system()),
       ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::bigint,
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True)
class DatabaseInfo:
    incarnation: str
    partitions: tuple[int, ...] = (PARTITION,)


class PostgresUpstream:
    """:param journal: of the source. :param store: its state. :param timeout: seconds that one call may take."""

    def __init__(
        self,
        config: PostgresConfig,
        publication: str,
        journal: JournalId,
        store: JournalStore | None,
        *,
        timeout: float = REQUEST_SECONDS,
    ) -> None:
        self._publication, self._journal, self._store = publication, journal, store
        self._session = Session(config, "checks", timeout=timeout)

    def inspect(self, start: Start) -> Inspection:
        """Everything that must hold before a source is created."""
        with self._session.opened() as connection:
            checks.check_server(connection, self._session.config)
            checks.check_publication(connection, self._publication)
            checks.check_room(connection)
        return Inspection(self.describe(), self.resolve_start(start))

    def describe(self) -> DatabaseInfo:
        system, timeline, database = self._session.row(_WHO)
        return DatabaseInfo(str(Identity(int(system), int(timeline), int(database), self._journal)))

    def references(self) -> tuple[ReferenceInfo, ...]:
        with self._session.opened() as connection:
            return offers.references(connection, self._publication)

    def check_readable(self) -> None:
        """Of all that is published: what may not be read is named, with the right that it takes."""
        with self._session.opened() as connection:
            checks.check_server(connection, self._session.config)
            checks.check_publication(connection, self._publication)

    def check_identity(self, incarnation: str) -> None:
        checks.check_same(Identity.read(incarnation), Identity.read(self.describe().incarnation))

    def check_history(self, lower: Position) -> None:
        recorded = self._store is not None and boundary_of(self._store) is not None
        if recorded and self._store is not None:
            check_reach(self._store, lower[LANE])
            check_begin(self._store, lower[LANE])
        name = slot_name(self._journal)
        with self._session.opened() as connection:
            found = look(connection, name)
        if recorded:
            checks.check_slot(found, name)

    def compaction(self) -> None:
        """Changes are never removed because of later ones."""

    def begin_offsets(self) -> Position:
        """What is left in the journal; the origin as long as nothing was removed from it. Of the transaction whose
        changes are the first that are left, some may be gone."""
        trimmed = self._store is not None and any(state.begin for state in self._store.partitions())
        oldest = oldest_of(self._store) if trimmed and self._store is not None else None
        return Position() if oldest is None else Position({LANE: oldest + 1})

    def end_offsets(self) -> Position:
        """Where the server's log ends: nothing beyond that can be committed and sent yet."""
        (end,) = self._session.row("SELECT pg_current_wal_flush_lsn()")
        return Position({LANE: read_lsn(str(end))})

    def resolve_start(self, start: Start) -> Position:
        """A slot has nothing from before: a table's rows from before come from a snapshot of it. So a source begins
        where it is recorded up to; and if nothing is yet, before whatever its slot will send."""
        recorded = boundary_of(self._store) if self._store is not None else None
        return self.end_offsets() if recorded is None else Position({LANE: recorded})

    def record_sizes(self, lower: Position, upper: Position) -> Mapping[str, float]:
        """Bytes of the server's log for each number of a position: that is what its numbers count."""
        return {LANE: 1.0}

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> PostgresUpstream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
