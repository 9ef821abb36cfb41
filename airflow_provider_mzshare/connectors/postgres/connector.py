"""A Postgres source's way to its database, through its connection, and to the journal of what that has said."""

from __future__ import annotations

from typing import Any

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS, Journals
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig, connect, explained
from airflow_provider_mzshare.connectors.postgres.feed import PostgresFeed, open_feed
from airflow_provider_mzshare.connectors.postgres.identity import Identity, slot_name
from airflow_provider_mzshare.connectors.postgres.ranges import Ranges
from airflow_provider_mzshare.connectors.postgres.reader import PostgresReader
from airflow_provider_mzshare.connectors.postgres.records import PostgresRecords
from airflow_provider_mzshare.connectors.postgres.slot import drop, ours
from airflow_provider_mzshare.connectors.postgres.snapshot import PostgresSnapshots
from airflow_provider_mzshare.connectors.postgres.specs import PostgresSpec
from airflow_provider_mzshare.connectors.postgres.upstream import PostgresUpstream
from airflow_provider_mzshare.core.ids import new_journal_id
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.errors import BadConnection


class PostgresConnector:
    """:param incarnation: of a source that is made already; a new one gets a journal that nobody has written to."""

    def __init__(
        self, spec: PostgresSpec, connection: Connection | None, incarnation: str | None, journals: Journals | None
    ) -> None:
        if connection is None:
            raise BadConnection(f"the source of publication {spec.publication!r} has no connection")
        self._spec, self._config, self._journals = spec, PostgresConfig.from_connection(connection), journals
        self._incarnation = incarnation
        self._journal = Identity.read(incarnation).journal if incarnation else new_journal_id()
        self._store: JournalStore | None = journals.open(self._journal) if journals else None

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> PostgresUpstream:
        return PostgresUpstream(self._config, self._spec.publication, self._journal, self._store, timeout=timeout)

    @property
    def journal(self) -> JournalStore:
        assert self._store is not None  # who reads or records has a catalog
        return self._store

    def reader(self, spark: Any) -> PostgresReader:
        return PostgresReader(spark, self.journal, self._ranges())

    def records(self) -> PostgresRecords:
        return PostgresRecords(self._ranges())

    def feed(self, after: int | None) -> PostgresFeed:
        assert self._incarnation is not None  # of a source that is made
        with self.upstream() as upstream:
            upstream.check_identity(self._incarnation)
        return open_feed(self._config, self._journal, self._spec.publication, after)

    def snapshots(self) -> PostgresSnapshots:
        return PostgresSnapshots(self._config, self._spec.publication)

    def _ranges(self) -> Ranges:
        return Ranges(self.journal, self._journals.warehouse if self._journals else "")

    def release(self) -> str:
        """Drop the slot, and end whoever reads it. No other slot is touched, however it is called."""
        name = slot_name(self._journal)
        with explained(self._config), connect(self._config, "drop slot") as session:
            return f"replication slot {name}" if drop(session, name) else ""

    @staticmethod
    def reach(connection: Connection) -> str:
        config = PostgresConfig.from_connection(connection)
        with explained(config), connect(config, "doctor") as session:
            version, found = session.info.server_version, ours(session)
        shown = f"Postgres {version // 10000}.{version % 10000} at {config.where} answers: {config.database!r}"
        kept = sum(slot.retained for slot in found) / (1 << 20)
        return f"{shown}; {len(found)} slot(s) of mzshare keep {kept:,.0f} MiB of its log" if found else shown
