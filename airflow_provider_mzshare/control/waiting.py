"""Waits until tables are live or have caught up; fails as soon as that cannot happen any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.status import SourceStatus, StatusReader, TableStatus
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.errors import JobFailed, WaitTimeout
from airflow_provider_mzshare.storage.connections import ConnectionStore
from airflow_provider_mzshare.types.positions import Position

Goal = Literal["live", "caught-up"]
POLL_SECONDS = 0.3
_HOPELESS = frozenset({"stalled", "failed", "lost", "stopped"})


@dataclass(frozen=True)
class Progress:
    """How far a wait has come, in offsets; ``total`` is 0 while only a first tick is awaited."""

    done: int
    total: int
    seconds: float
    note: str

    @property
    def rate(self) -> float:
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate > 0 else None


class Waiter:
    """One wait for a table, or for all tables of a source.

    :param report: called with each look.
    """

    def __init__(
        self,
        catalog: Catalog,
        status: StatusReader,
        connections: ConnectionStore,
        item: items.SourceItem | items.TableItem,
        goal: Goal,
        *,
        report: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self._status, self._item, self._goal, self._report = status, item, goal, report
        with catalog.read() as session:
            source_id = item.source_id if isinstance(item, items.TableItem) else item.id
            self._source = items.get_source_item(session, source_id)
        self._target = self._upstream_end(connections) if goal == "caught-up" else Position()
        self._began_at: Position | None = None

    def _upstream_end(self, connections: ConnectionStore) -> Position:
        """Seen once, now: a stream that never rests would never be caught up with."""
        with open_upstream(connections, self._source.spec) as upstream:
            return upstream.end_offsets()

    def wait(self, timeout: float | None) -> tuple[SourceStatus, list[TableStatus]]:
        began = time.monotonic()
        while True:
            source, tables = self._look()
            seconds = time.monotonic() - began
            progress = self._progress(source, tables, seconds)
            _check_hope(source, tables)
            self._report(progress)
            if all(self._reached(table) for table in tables):
                return source, tables
            if timeout is not None and seconds >= timeout:
                raise WaitTimeout(
                    f"{self._name} is not {self._goal} after {timeout:g} s: {progress.note}", hint="mzshare status"
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

    def _reached(self, table: TableStatus) -> bool:
        return table.status == "live" and table.upper is not None and self._target <= table.position

    def _progress(self, source: SourceStatus, tables: Sequence[TableStatus], seconds: float) -> Progress:
        slowest = tables[0].position if tables else source.position
        for table in tables[1:]:
            slowest = slowest.meet(table.position)
        self._began_at = self._began_at or slowest
        total = self._target.gap(self._began_at)
        reason = source.reason.rstrip(".")
        note = f"the source is {source.health}{f' ({reason})' if reason else ''}"
        return Progress(total - self._target.gap(slowest), total, seconds, note)


def _check_hope(source: SourceStatus, tables: Sequence[TableStatus]) -> None:
    """Rows that are there prove nothing about a source that has ended: it is looked at first."""
    if source.health in _HOPELESS:
        raise JobFailed(f"source {source.name} is {source.health}: {source.reason}", hint=source.hint)
    for table in tables:
        if table.status == "stalled":
            raise JobFailed(f"table {table.name} is stalled: {table.reason}", hint=table.hint)
    if not tables:
        raise JobFailed(f"source {source.name} has no tables", hint=source.hint)
