"""Is it live, or that far? The one decision of all waits, with its texts: it is, it cannot by itself, or not yet.

Pure. A wait looks, asks here, and looks again. There are two views:

- ``answer``: one table, by the catalog alone, which any machine can ask. Sensors and triggers wait by it.
- ``LiveWait.decide``: a table, or all tables of a source, by their status, which also says whether the processes of
  their apps are alive. ``mzshare wait`` and the ``wait`` of Python users wait by it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.queries.convergence import Convergence
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import JobFailed, TerminalError, UnknownItem, WaitTimeout

Goal = Literal["live", "caught-up"]
_HOPELESS = frozenset({"stalled", "failed", "lost", "stopped"})


# ── one table, by the catalog alone ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Question:
    """Is this table live? Or, with ``upper``: is all that is before this time final in it?

    :param table: its name as a user types it.
    :param max_lag: how many ticks it may be behind when its cutover is asked for.
    :param table_id: the table that had the name when the wait began: another table with this name is not it.
    :param generation: the generation that was to become live when the wait began; it may be given up meanwhile.
    :param upper: a time, in milliseconds; then it does not matter whether the table is live.
    """

    table: str
    max_lag: int = 1
    table_id: ItemId | None = None
    generation: int | None = None
    upper: int | None = None

    def about(self, found: Convergence) -> Question:
        """The same question after the first look: about the table and the generation that were found then."""
        return self if self.table_id else replace(self, table_id=found.table_id, generation=found.awaited)


@dataclass(frozen=True)
class Answer:
    """Not yet, unless ``result`` or ``error`` is set.

    :param convergence: None where there is no such table.
    :param result: the certificate of the cutover, if the table is live; how far it is, if that was the question.
    """

    convergence: Convergence | None = None
    result: Mapping[str, Any] | None = None
    error: TerminalError | None = None

    @property
    def ends(self) -> bool:
        return self.result is not None or self.error is not None


def answer(question: Question, found: Convergence | None) -> Answer:
    if found is None:
        return Answer(error=UnknownItem("table", question.table))
    if question.upper is not None:
        return _reached(question.upper, found)
    if found.error is not None:
        return Answer(found, error=JobFailed(found.error, hint=_hint(found)))
    if not found.converged:
        return Answer(found)
    if question.generation is not None and found.generation < question.generation:
        retired = f"the new generation of table {found.table} was given up before it was live"
        return Answer(found, error=JobFailed(retired, hint=_hint(found)))
    return Answer(found, result=_proof(found))


def _reached(upper: int, found: Convergence) -> Answer:
    """What is final stays so, whatever becomes of the table; but one that was dropped cannot be read."""
    if found.upper >= upper and found.status != "dropped":
        return Answer(found, result={"table": found.table, "table_id": found.table_id, "upper": found.upper})
    if found.at_its_end is not None:
        return Answer(found, error=JobFailed(found.at_its_end, hint=_hint(found)))
    return Answer(found)


def _proof(found: Convergence) -> Mapping[str, Any]:
    """A table that became live without a backfill has no certificate."""
    return found.certificate.to_json() if found.certificate else {"table": found.table, "status": found.status}


def _hint(found: Convergence) -> str:
    if found.status == "dropped":
        return "mzshare status"
    return hints.heal(found.table, found.reason) if found.is_stalled else hints.command("status", found.table)


# ── a table, or all tables of a source, by their status ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Decision:
    """What one look comes to. Still waiting, unless ``reached`` or ``error`` is set.

    :param progress: how far it is, what holds it up, and the next step where nothing happens by itself.
    :param unstarted: by backfill, tables whose backfill is not started yet: the wait may start it.
    :param queued: a backfill waits until fewer run. Without a reconciler, the wait starts those whose turn
        it is.
    """

    progress: Progress
    reached: bool
    error: TerminalError | None = None
    unstarted: Mapping[str, Sequence[ItemId]] = field(default_factory=dict)
    queued: bool = False


class LiveWait:
    """One wait, from its first look to its last: what it reports only grows.

    :param name: what is waited for, as a user names it.
    :param target: what has to be in the tables: where the upstream ended when the wait began.
    """

    def __init__(self, name: str, goal: Goal, target: Position) -> None:
        self._name, self._goal, self._target = name, goal, target
        self._began_at: Position | None = None
        self._arrivals = _Arrivals()

    def decide(
        self, source: SourceStatus, tables: Sequence[TableStatus], arriving: Collection[Answer], seconds: float
    ) -> Decision:
        """:param arriving: the answers about those of the tables that a backfill brings up.
        :param seconds: how long the wait has lasted.
        """
        found = [told.convergence for told in arriving if told.convergence]
        unstarted: dict[str, list[ItemId]] = {}
        for table in tables:
            if table.backfill and not table.backfill_job:
                unstarted.setdefault(table.backfill, []).append(ItemId(table.id))
        return Decision(
            self._progress(source, tables, seconds),
            all(self._has_reached(table) for table in tables),
            _failure(source, tables, found),
            unstarted,
            any(table.queue_place for table in tables),
        )

    def timed_out(self, decision: Decision, timeout: float) -> WaitTimeout:
        progress = decision.progress
        message = f"{self._name} is not {self._goal} after {timeout:g} s: {progress.note}"
        return WaitTimeout(message, hint=progress.hint or "mzshare status")

    def _has_reached(self, table: TableStatus) -> bool:
        live = table.status == "live" and table.new_status is None and table.upper is not None
        return live and self._target <= table.position

    def _progress(self, source: SourceStatus, tables: Sequence[TableStatus], seconds: float) -> Progress:
        done, total = self._arrivals.count(tables)
        arriving = [table for table in tables if table.backfill]
        if arriving:
            rearmost = max(arriving, key=lambda table: table.behind or 0)
            return replace(_arrival(rearmost, source, seconds), done=done, total=total)
        slowest = tables[0].position if tables else source.position
        for table in tables[1:]:
            slowest = slowest.meet(table.position)
        self._began_at = self._began_at or slowest
        wanted = self._target.gap(self._began_at)
        reached = wanted - self._target.gap(slowest)
        rate = reached / seconds if seconds > 0 else 0.0
        pace = rate, (wanted - reached) / rate if rate else None
        reason = source.reason.rstrip(".")
        note = f"the source is {source.health}{f' ({reason})' if reason else ''}"
        hint = source.hint if source.health == "waiting" else ""
        return Progress(done + reached, total + wanted, seconds, note, pace, hint)


class _Arrivals:
    """How far the backfills of all tables of a wait are, together. It only grows: what has arrived stays counted."""

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
            if key not in coming:  # the table has arrived, or another backfill goes on where this one was given up
                self._seen[key] = (done, done) if key[0] in arriving else (total, total)
        return sum(done for done, _ in self._seen.values()), sum(total for _, total in self._seen.values())


def _arrival(table: TableStatus, source: SourceStatus, seconds: float) -> Progress:
    """The source's app does the cutover: if that app is not started, the table does not become live."""
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


def _failure(
    source: SourceStatus, tables: Sequence[TableStatus], arriving: Sequence[Convergence]
) -> TerminalError | None:
    """Why it will not get there by itself.

    The source comes first: rows that are there prove nothing about a source that has ended. A lost app is no failure
    while a backfill goes on, since the reconciler starts the app again.
    """
    if source.health in _HOPELESS and not (source.health == "lost" and arriving):
        return JobFailed(f"source {source.name} is {source.health}: {source.reason}", hint=source.hint)
    failures = [*map(_stall, tables), *map(_backfill_failure, arriving)]
    for error in failures:
        if error is not None:
            return error
    return None if tables else JobFailed(f"source {source.name} has no tables", hint=source.hint)


def _stall(table: TableStatus) -> TerminalError | None:
    if table.status == "stalled" and table.new_status in (None, "stalled"):
        return JobFailed(f"table {table.name} is stalled: {table.reason}", hint=table.hint)
    if table.new_status == "stalled":
        return JobFailed(f"table {table.name}: {table.reason}", hint=table.hint)
    return None


def _backfill_failure(found: Convergence) -> TerminalError | None:
    if found.status == "dropped":
        return UnknownItem("table", found.table)
    return JobFailed(found.error, hint=hints.command("logs", found.table)) if found.error else None
