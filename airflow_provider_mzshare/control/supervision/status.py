"""How sources and tables are, in words a person can act on; told from the catalog, processes and upstreams."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.connectors.registry import AbsentSpec, absence
from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.health import Verdict, judge
from airflow_provider_mzshare.control.catalog.queries.overviews import (
    ArrivalOverview,
    SourceOverview,
    TableOverview,
    current_overview,
    table_overviews,
)
from airflow_provider_mzshare.control.lifecycle.arrival_text import judge_arrival, pace_of
from airflow_provider_mzshare.control.lifecycle.holding import shown_holds
from airflow_provider_mzshare.control.lifecycle.locations import data_paths
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus
from airflow_provider_mzshare.control.lifecycle.typed_names import find_item
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.errors import MzShareError, UnknownItem
from airflow_provider_mzshare.formats.registry import FORMATS
from airflow_provider_mzshare.storage.writing.member_plans import key_of

__all__ = ["LAG_SECONDS", "SourceStatus", "StatusReader", "TableStatus"]

LAG_SECONDS = 3.0
_ASKED_AT_ONCE = 8


class StatusReader:
    """:param connections: to ask upstreams how far behind we are; None: they are not asked."""

    def __init__(self, catalog: Catalog, launchers: Launchers, connections: ConnectionStore | None = None) -> None:
        self._catalog, self._launchers, self._connections = catalog, launchers, connections

    def sources(self) -> list[SourceStatus]:
        with self._catalog.read() as session:
            found = [current_overview(session, source.id) for source in items.list_sources(session)]
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            ends = pool.map(self._end, [overview.item for overview in found])
            return [self._source(overview, end) for overview, end in zip(found, ends, strict=True)]

    def named(self, name: str) -> tuple[SourceStatus, list[TableStatus]]:
        """Of a source with its tables, or of one table with its source."""
        item = find_item(self._catalog, name)
        if isinstance(item, items.SourceItem):
            return self.source(item)
        source, table = self.table(item)
        return source, [table]

    def source(self, item: items.SourceItem) -> tuple[SourceStatus, list[TableStatus]]:
        with self._catalog.read() as session:
            overview = current_overview(session, item.id)
            tables = table_overviews(session, item.id)
            paths = data_paths(session, item.id)
            holds = shown_holds(session, [table.item.id for table in tables])
        end = self._end(item)
        status = self._source(overview, end)
        found = [self._table(table, overview, status, end) for table in tables]
        return status, [
            replace(
                table,
                location=paths.get(ItemId(table.id), ""),
                holds=[hold for table_id, hold in holds if table_id == table.id],
            )
            for table in found
        ]

    def table(self, item: items.TableItem) -> tuple[SourceStatus, TableStatus]:
        with self._catalog.read() as session:
            source = items.get_source_item(session, item.source_id)
        status, tables = self.source(source)
        for table in tables:
            if table.id == item.id:
                return status, table
        raise UnknownItem("table", item.display)

    def _verdict(self, overview: SourceOverview) -> Verdict:
        job, verdict = overview.job, judge(overview, self._alive(overview.job))
        if missing := absence(overview.item.spec):
            return replace(verdict, reason=str(missing), hint=missing.hint)
        if verdict.health != "lost" or job is None or not job.is_active:
            return verdict
        # Nobody has recorded its end yet: the last error in its log says more than that it is gone.
        run = run_of(job, self._launchers)
        words = run.last_words() if run else ""
        return replace(verdict, reason=f"{verdict.reason}; its last message: {words}") if words else verdict

    def _alive(self, job: Job | None) -> bool | None:
        if job is None or not job.is_active:
            return False
        run = run_of(job, self._launchers)
        if run is None:
            return None
        found = run.status()
        return None if found == "unknown" else found == "alive"

    def _end(self, item: items.SourceItem) -> Position | None:
        """Where the upstream ends now. A status must not fail or hang because the upstream is away."""
        if self._connections is None or item.status != "active":
            return None
        try:
            with open_upstream(
                self._connections, item.spec, item.incarnation, timeout=LAG_SECONDS, journals=journals_of(self._catalog)
            ) as upstream:
                return upstream.end_offsets()
        except MzShareError:
            return None

    def _source(self, overview: SourceOverview, end: Position | None) -> SourceStatus:
        item, job, last = overview.item, overview.job, overview.last_tick
        verdict, lag = self._verdict(overview), None if end is None else end.gap(overview.position)
        return SourceStatus(
            id=item.id,
            name=str(QualifiedName(*item.name)),
            health="running" if verdict.health == "idle" and lag else verdict.health,
            reason=verdict.reason,
            hint=verdict.hint,
            job=job.id if job else None,
            pid=job.pid if job and job.is_active else None,
            tables=sum(overview.tables.values()),
            tick=last.number if last else None,
            mz_timestamp=last.mz_timestamp if last else None,
            position=overview.position,
            age_seconds=None if overview.age_ms is None else overview.age_ms / 1000,
            rate=overview.rate if job and job.is_active else None,
            lag=lag,
            shown=_shown(item, overview.position),
        )

    def _table(
        self, table: TableOverview, overview: SourceOverview, source: SourceStatus, end: Position | None
    ) -> TableStatus:
        item = table.item
        status = TableStatus(
            id=item.id,
            name=str(QualifiedName(*item.name)),
            source=source.name,
            status="damaged" if item.damage else item.status,
            reason="; ".join(filter(None, (item.damage, item.reason))),
            hint="",
            rows=item.rows,
            errors=item.errors,
            since=item.since or None,
            upper=item.upper or None,
            position=item.position,
            rate=source.rate if item.status == "live" else None,
            lag=None if end is None else end.gap(item.position),
            generation=item.generation,
            key=_key(overview.item, item),
            shown=_shown(overview.item, item.position),
        )
        status = replace(status, hint=_table_hint(status))
        return status if table.arrival is None else self._arriving(status, table.arrival, overview)

    def _arriving(self, status: TableStatus, arrival: ArrivalOverview, source: SourceOverview) -> TableStatus:
        """Of a table or a new generation that is being brought up. Problems of the current generation come first."""
        verdict = judge_arrival(arrival, source, self._alive(arrival.job), status.name)
        pace, runs = pace_of(arrival, source), arrival.job is not None and arrival.job.is_active
        rate = pace.rate if runs else None
        return replace(
            status,
            reason="; ".join(filter(None, (status.reason, verdict.reason))),
            hint=verdict.hint or ("" if status.status in ("stalled", "damaged") else status.hint),
            held_up=verdict.held_up,
            rate=status.rate if arrival.replaces else rate,
            backfill=arrival.backfill_id,
            backfill_job=arrival.job.id if arrival.job else None,
            backfill_rate=rate,
            new_generation=arrival.generation if arrival.replaces else None,
            new_status=arrival.status if arrival.replaces else None,
            done=arrival.done,
            total=arrival.total,
            ticks_behind=arrival.lag,
            behind=arrival.behind,
            seconds_left=pace.seconds_left if runs else None,
            queue_place=arrival.place.number if arrival.place else None,
            queue_length=arrival.place.of if arrival.place else None,
        )


def _shown(source: items.SourceItem, position: Position) -> Mapping[str, str]:
    """The position as people know it. Empty where the kind of source is not installed, so only numbers can be shown."""
    return {} if isinstance(source.spec, AbsentSpec) else source.place.shown(position)


def _key(source: items.SourceItem, table: items.TableItem) -> tuple[str, ...]:
    """Empty also where the kind of source, the format or the envelope is not installed."""
    spec, absent = table.spec, isinstance(source.spec, AbsentSpec)
    return () if absent or spec.envelope not in ENVELOPES or spec.format not in FORMATS else key_of(spec)


def _table_hint(table: TableStatus) -> str:
    if table.status == "damaged":
        return hints.resnapshot(table.name)
    if table.status == "stalled":
        # Nothing of the tick that stalled it was kept, so its errors do not show the record: the reason does.
        return hints.heal(table.name, table.reason)
    return f"{hints.command('read', table.name)} --errors" if table.errors else ""
