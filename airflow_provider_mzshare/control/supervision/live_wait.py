"""Waits until tables are live or have caught up; fails as soon as that cannot happen any more.

Tables that a backfill has brought close enough are let converge on the way.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.convergence import Convergence, convergences
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.supervision.status import SourceStatus, StatusReader, TableStatus
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import JobFailed, UnknownItem, WaitTimeout

Goal = Literal["live", "caught-up"]
POLL_SECONDS = 0.3
QUEUE_SECONDS = 2.0
"""Between two looks at whether a queued backfill can be started: all sources are looked at."""
_HOPELESS = frozenset({"stalled", "failed", "lost", "stopped"})


class Waiter:
    """One wait for a table, or for all tables of a source.

    :param max_lag: how many ticks a table may be behind that is let converge.
    :param bring_up: starts the backfills of tables that nobody has started; what it does not start is told.
    :param report: called with each look.
    :param start_queued: called now and then while a backfill that is waited for is queued, to start whose turn it is.
    """

    def __init__(
        self,
        catalog: Catalog,
        status: StatusReader,
        connections: ConnectionStore,
        item: items.SourceItem | items.TableItem,
        goal: Goal,
        *,
        max_lag: int = 1,
        bring_up: Callable[[Sequence[ItemId]], object] = lambda tables: None,
        report: Callable[[Progress], None] = lambda progress: None,
        start_queued: Callable[[], object] = lambda: None,
    ) -> None:
        self._catalog, self._status, self._max_lag, self._bring_up = catalog, status, max_lag, bring_up
        self._tried: set[str] = set()
        self._start_queued, self._next_start = start_queued, 0.0
        self._item, self._goal, self._report = item, goal, report
        with catalog.read() as session:
            source_id = item.source_id if isinstance(item, items.TableItem) else item.id
            self._source = items.get_source_item(session, source_id)
        self._target = self._upstream_end(connections) if goal == "caught-up" else Position()
        self._began_at: Position | None = None
        self._arrivals = _Arrivals()

    def _upstream_end(self, connections: ConnectionStore) -> Position:
        """Seen once, now: a stream that never rests would never be caught up with."""
        with open_upstream(connections, self._source.spec, self._source.incarnation) as upstream:
            return upstream.end_offsets()

    def wait(self, timeout: float | None) -> tuple[SourceStatus, list[TableStatus]]:
        began = time.monotonic()
        while True:
            source, tables = self._look()
            seconds = time.monotonic() - began
            progress = self._progress(source, tables, seconds)
            coming = self._convergences(tables)
            _check_hope(source, tables, coming)
            self._report(progress)
            self._start(tables)
            self._arm(coming)
            self._help_on(tables)
            if all(self._reached(table) for table in tables):
                return source, tables
            if timeout is not None and seconds >= timeout:
                raise WaitTimeout(
                    f"{self._name} is not {self._goal} after {timeout:g} s: {progress.note}",
                    hint=progress.hint or "mzshare status",
                )
            time.sleep(POLL_SECONDS if timeout is None else min(POLL_SECONDS, timeout))

    @property
    def _name(self) -> str:
        return self._item.display

    def _look(self) -> tuple[SourceStatus, list[TableStatus]]:
        if isinstance(self._item, items.TableItem):
            source, table = self._status.table(self._item)
            return source, [table]
        return self._status.source(self._item)

    def _convergences(self, tables: Sequence[TableStatus]) -> list[Convergence]:
        """Of those that are being brought up."""
        with self._catalog.read() as session:
            return list(convergences(session, [ItemId(table.id) for table in tables if table.backfill]).values())

    def _start(self, tables: Sequence[TableStatus]) -> None:
        """Once for each backfill: what ends is the reconciler's."""
        wanted = [table for table in tables if table.backfill and not table.backfill_job]
        new = [table for table in wanted if table.backfill not in self._tried]
        self._tried |= {table.backfill for table in new if table.backfill}
        if new:
            self._bring_up([ItemId(table.id) for table in new])

    def _arm(self, coming: Sequence[Convergence]) -> None:
        """The rule decides behind the source's lock, for whoever asks: sensors and the reconciler do so too."""
        for one in coming:
            if one.can_arm(self._max_lag):
                with self._catalog.write() as session:
                    arm_table(session, one.table_id, max_lag=self._max_lag)

    def _help_on(self, tables: Sequence[TableStatus]) -> None:
        """Where no reconciler is kept, nobody else would start what is queued."""
        if any(table.queue_place for table in tables) and time.monotonic() >= self._next_start:
            self._start_queued()
            self._next_start = time.monotonic() + QUEUE_SECONDS

    def _reached(self, table: TableStatus) -> bool:
        there = table.status == "live" and table.new_status is None and table.upper is not None
        return there and self._target <= table.position

    def _progress(self, source: SourceStatus, tables: Sequence[TableStatus], seconds: float) -> Progress:
        done, total = self._arrivals.count(tables)
        coming = [table for table in tables if table.backfill]
        if coming:
            told = _arrival(max(coming, key=lambda table: table.behind or 0), source, seconds)
            return replace(told, done=done, total=total)
        slowest = tables[0].position if tables else source.position
        for table in tables[1:]:
            slowest = slowest.meet(table.position)
        self._began_at = self._began_at or slowest
        wanted = self._target.gap(self._began_at)
        reason = source.reason.rstrip(".")
        note = f"the source is {source.health}{f' ({reason})' if reason else ''}"
        hint = source.hint if source.health == "waiting" else ""
        reached = wanted - self._target.gap(slowest)
        rate = reached / seconds if seconds > 0 else 0.0
        pace = rate, (wanted - reached) / rate if rate else None
        return Progress(done + reached, total + wanted, seconds, note, pace, hint)


class _Arrivals:
    """How far all tables of a wait are that a backfill brings up, together: it grows, and what has arrived stays."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, int]] = {}

    def count(self, tables: Sequence[TableStatus]) -> tuple[int, int]:
        """Offsets done, of how many."""
        coming = {(table.id, table.backfill): table for table in tables if table.backfill}
        for key, table in coming.items():
            done, total = self._seen.get(key, (0, 0))
            self._seen[key] = max(done, table.done or 0), max(total, table.total or 0)
        arriving = {table_id for table_id, _ in coming}
        for key, (done, total) in self._seen.items():
            if key not in coming:  # it is there, or another backfill goes on where this one was given up
                self._seen[key] = (done, done) if key[0] in arriving else (total, total)
        return sum(done for done, _ in self._seen.values()), sum(total for _, total in self._seen.values())


def _arrival(table: TableStatus, source: SourceStatus, seconds: float) -> Progress:
    """The cutover is the source's to do: one that nothing has started keeps the table from being live."""
    what = f"{table.name} is {table.status}"
    if table.new_status is not None:
        what = f"generation {table.new_generation} of {table.name} is {table.new_status}"
    ticks = f"{table.ticks_behind} tick{'s' * (table.ticks_behind != 1)} behind"
    held_up, hint = table.held_up, table.hint if table.held_up else ""
    if not held_up and source.health == "waiting":
        held_up, hint = f"its source is waiting: {source.reason}", source.hint
    note = f"{what}, {ticks}{f' ({held_up})' if held_up else ''}"
    pace = (table.backfill_rate or 0.0, table.seconds_left)
    return Progress(table.done or 0, table.total or 0, seconds, note, pace, hint)


def _check_hope(source: SourceStatus, tables: Sequence[TableStatus], coming: Sequence[Convergence]) -> None:
    """Rows that are there prove nothing about a source that has ended: it is looked at first.

    What is lost is the reconciler's to start again, and a backfill goes on meanwhile.
    """
    if source.health in _HOPELESS and not (source.health == "lost" and coming):
        raise JobFailed(f"source {source.name} is {source.health}: {source.reason}", hint=source.hint)
    for table in tables:
        if table.status == "stalled" and table.new_status in (None, "stalled"):
            raise JobFailed(f"table {table.name} is stalled: {table.reason}", hint=table.hint)
        if table.new_status == "stalled":
            raise JobFailed(f"table {table.name}: {table.reason}", hint=table.hint)
    for one in coming:
        if one.status == "dropped":
            raise UnknownItem("table", one.table)
        if one.error:
            raise JobFailed(one.error, hint=f"mzshare logs {shlex.quote(one.table)}")
    if not tables:
        raise JobFailed(f"source {source.name} has no tables", hint=source.hint)
