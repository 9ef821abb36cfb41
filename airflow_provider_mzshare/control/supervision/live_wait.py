"""Waits until tables are live or have caught up, and helps them on; ``live_decision`` says when that is, or cannot be.

Helps on: starts backfills that nobody has started, and lets tables converge that a backfill has brought close enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.converged_wait import arm, look
from airflow_provider_mzshare.control.lifecycle.live_decision import Answer, Decision, Goal, LiveWait, Question
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position

POLL_SECONDS = 0.3
QUEUE_SECONDS = 2.0
"""Between two looks at whether a queued backfill can be started: all sources are looked at."""


class Waiter:
    """One wait for a table, or for all tables of a source.

    :param max_lag: how many ticks a table may be behind when its cutover is asked for.
    :param bring_up: starts the backfills of these tables, which nobody has started.
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
        self._catalog, self._status, self._item, self._max_lag = catalog, status, item, max_lag
        self._report, self._bring_up, self._start_queued = report, bring_up, start_queued
        self._tried: set[str] = set()
        self._next_start = 0.0
        self._wait = LiveWait(item.display, goal, self._target(connections) if goal == "caught-up" else Position())

    def _target(self, connections: ConnectionStore) -> Position:
        """Where the upstream ends, seen once, now: a stream that never rests would never be caught up with."""
        with self._catalog.read() as session:
            source_id = self._item.source_id if isinstance(self._item, items.TableItem) else self._item.id
            source = items.get_source_item(session, source_id)
        journals = journals_of(self._catalog)
        with open_upstream(connections, source.spec, source.incarnation, journals=journals) as upstream:
            return upstream.end_offsets()

    def wait(self, timeout: float | None) -> tuple[SourceStatus, list[TableStatus]]:
        began = time.monotonic()
        while True:
            source, tables = self._look()
            seconds = time.monotonic() - began
            arriving = self._arriving(tables)
            decision = self._wait.decide(source, tables, arriving.values(), seconds)
            if decision.error is not None:
                raise decision.error
            self._report(decision.progress)
            self._help_on(decision, arriving)
            if decision.reached:
                return source, tables
            if timeout is not None and seconds >= timeout:
                raise self._wait.timed_out(decision, timeout)
            time.sleep(POLL_SECONDS if timeout is None else min(POLL_SECONDS, timeout))

    def _look(self) -> tuple[SourceStatus, list[TableStatus]]:
        if isinstance(self._item, items.TableItem):
            source, table = self._status.table(self._item)
            return source, [table]
        return self._status.source(self._item)

    def _arriving(self, tables: Sequence[TableStatus]) -> Mapping[Question, Answer]:
        """What the catalog says of those that a backfill brings up."""
        coming = [table for table in tables if table.backfill]
        return look(self._catalog, [Question(table.name, self._max_lag, ItemId(table.id)) for table in coming])

    def _help_on(self, decision: Decision, arriving: Mapping[Question, Answer]) -> None:
        self._start(decision.unstarted)
        arm(self._catalog, arriving)
        if decision.queued and time.monotonic() >= self._next_start:
            self._start_queued()
            self._next_start = time.monotonic() + QUEUE_SECONDS

    def _start(self, unstarted: Mapping[str, Sequence[ItemId]]) -> None:
        """Once for each backfill: an app that has ended is the reconciler's to start again."""
        new = {backfill: tables for backfill, tables in unstarted.items() if backfill not in self._tried}
        self._tried |= new.keys()
        if new:
            self._bring_up([table for tables in new.values() for table in tables])
