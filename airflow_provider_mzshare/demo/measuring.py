"""What the demo looks at: the tables as they are, gaps between commits, and what the tables really hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich.table import Table
from sqlalchemy import select

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.jobs import last_jobs
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import Certificate, last_certificate
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_table
from airflow_provider_mzshare.control.supervision.status import StatusReader, TableStatus
from airflow_provider_mzshare.settings import Settings


class Gauge:
    """:param env: where the demo's catalog and warehouse are."""

    def __init__(self, env: Mapping[str, str], source: str) -> None:
        self._settings = Settings.from_environment(env)
        self._catalog = open_catalog(self._settings.catalog_url)
        self._catalog.ensure()
        self._status = StatusReader(self._catalog, Launchers(self._settings))
        self._source = source

    def close(self) -> None:
        self._catalog.close()

    def tables(self) -> list[TableStatus]:
        """None while the source does not exist yet."""
        with self._catalog.read() as session:
            item = items.find(session, ("public", self._source))
        return self._status.source(item)[1] if isinstance(item, items.SourceItem) else []

    def picture(self, sent: int) -> Table:
        picture = Table("table", "status", "rows", "behind", "rows/s", "next offsets")
        for table in self.tables():
            rate = "" if table.rate is None else f"{table.rate:,.0f}"
            offsets = [table.position[partition] for partition in sorted(table.position)]
            behind, places = max(0, sent - sum(offsets)), " ".join(str(offset) for offset in offsets)
            name = table.name.removeprefix("public.")
            picture.add_row(name, table.status, f"{table.rows:,}", f"{behind:,}", rate, places)
        return picture

    def longest_gap(self, begin_ms: int, end_ms: int) -> float:
        """The longest time between two commits of the source's tables, in seconds; commits of this period count."""
        with self._catalog.read() as session:
            source = items.find_source(session, ("public", self._source))
            query = select(TickRow.committed_at).where(TickRow.source_id == source.id, TickRow.committed)
            times = sorted(t for t in session.scalars(query) if t is not None and begin_ms <= t <= end_ms)
        return max((later - sooner for sooner, later in pairwise(times)), default=0) / 1000

    def certificate(self, table: str) -> Certificate | None:
        with self._catalog.read() as session:
            return last_certificate(session, items.find_table(session, ("public", table)).id)

    def ingestion_starts(self) -> int:
        """How often the shared app was started."""
        with self._catalog.read() as session:
            source = items.find_source(session, ("public", self._source))
            return sum(1 for job in last_jobs(session, source.id, 100) if job.kind == "ingest")

    def holds(self, table: str, column: str, wanted: Sequence[object]) -> bool:
        """Does the table, read from its Delta files, hold exactly these values, each once?"""
        found = read_table(self._catalog, self._settings.warehouse, table, Query(columns=[column]))
        return sorted(found.column(column).to_pylist()) == sorted(wanted)  # type: ignore[type-var]


def now_ms() -> int:
    return wall_ms()
