"""Decides what to start, stop, give up and tidy away; it looks at nothing itself and has no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from airflow_provider_mzshare.control.catalog.jobs import ACTIVE, LAUNCH_SECONDS
from airflow_provider_mzshare.control.supervision.actions import (
    Abandon,
    Action,
    Arm,
    DroppedJournal,
    DroppedTable,
    GiveUp,
    Isolate,
    Merge,
    Queue,
    RemoveJournal,
    RemoveTable,
    Start,
    Stop,
    Tidy,
    Wait,
)
from airflow_provider_mzshare.control.supervision.queue_rules import Slots, share_out

_BAD_ENDS = frozenset({"failed", "lost", "fenced"})

HEALTHY_SECONDS = 60.0
"""After a run of this length the back-off begins again at its shortest wait."""
BACKOFF_SECONDS, BACKOFF_CAP_SECONDS = 5.0, 300.0
DEATHS = 5
"""How often in a row the app of a backfill may die before its first work is done. One of its tables may kill it."""
KEEP_LOGS = 20

Process = Literal["alive", "gone", "absent", "unknown"]
"""``absent``: no process was ever recorded for the job. ``unknown``: it runs on another machine."""


@dataclass(frozen=True)
class JobView:
    """One job as it was found. Ages are for back-off and for people; correctness does not depend on them."""

    job_id: str
    state: str
    age: float = 0.0
    ran: float = 0.0
    ended_ago: float = 0.0
    process: Process = "absent"
    heart_stopped: bool = False
    """Its lease got no heartbeat for the whole time-to-live, by the clock of this process."""
    started: bool = True
    """Its process had Spark and its connection. If not, no table can be the reason why it ended."""
    worked: bool = False
    """Its first work was done, or there was none to do."""
    has_scratch: bool = False
    has_folder: bool = False

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


@dataclass(frozen=True)
class BackfillView:
    """One backfill of a source. It is over when no table needs it any more: then nothing of it may be left."""

    backfill_id: str
    tables: tuple[str, ...] = ()
    """Names of those it brings up."""
    jobs: tuple[JobView, ...] = ()
    """Newest first."""
    since: int = 0
    """Its place among those that wait for an app."""


@dataclass(frozen=True)
class SourceView:
    source_id: str
    name: str
    status: str
    desired: str
    tables: int
    """Tables in any state but dropped."""
    jobs: tuple[JobView, ...] = ()
    """Of its ingestion app, newest first."""
    backfills: tuple[BackfillView, ...] = ()
    ready: tuple[str, ...] = ()
    """Names of tables that are close enough to the log to converge."""
    merges: tuple[tuple[str, ...], ...] = ()
    """Groups of its backfills that are to be merged; the last of each group takes the others' tables."""


@dataclass(frozen=True)
class Overview:
    sources: tuple[SourceView, ...] = ()
    dropped: tuple[DroppedTable, ...] = ()
    journals: tuple[DroppedJournal, ...] = ()
    slots: Slots | None = None
    """None: any number of backfills may run."""


def plan(overview: Overview, *, at_once: bool = False) -> list[Action]:
    """:param at_once: a user asked for a start: no back-off."""
    actions: list[Action] = []
    for source in overview.sources:
        actions += _plan_source(source, at_once)
    actions += [RemoveTable(t.name, t.why, t) for t in overview.dropped]
    actions += [RemoveJournal(j.name, j.why, j) for j in overview.journals]
    return actions if overview.slots is None else share_out(actions, overview.slots)


def plan_queued(overview: Overview) -> list[Action]:
    """Only the actions that start queued backfills. Everything else that should run is left to a reconciler."""
    if overview.slots is None or not overview.slots.queued:
        return []
    queued = {one for _, one in overview.slots.queued}
    actions = plan(replace(overview, slots=None))
    merges = [a for a in actions if isinstance(a, Merge) and queued.intersection(a.backfill_ids)]
    queued.update(merge.backfill_ids[-1] for merge in merges)
    lost = [a for a in actions if isinstance(a, GiveUp) and a.backfill_id]
    starts = [a for a in actions if isinstance(a, Start) and a.backfill_id in queued]
    shared = [a for a in share_out([*lost, *merges, *starts], overview.slots) if not isinstance(a, Queue)]
    return shared if any(isinstance(action, Start) for action in shared) else []


def should_run(source: SourceView) -> bool:
    return source.status == "active" and source.desired == "running" and source.tables > 0


def should_backfill(source: SourceView, backfill: BackfillView) -> bool:
    """Also of a stalled source: minted ticks can be executed as long as the upstream has their records."""
    return source.status != "dropped" and source.desired == "running" and bool(backfill.tables)


def backoff_seconds(jobs: Iterable[JobView]) -> float:
    """How long after the last end to wait: doubled by each quick failure in a row, none after a healthy run."""
    failures = 0
    for job in jobs:
        if job.state not in _BAD_ENDS or job.ran >= HEALTHY_SECONDS:
            break
        failures += 1
    if not failures:
        return 0.0
    return float(min(BACKOFF_CAP_SECONDS, BACKOFF_SECONDS * 2 ** min(failures - 1, 10)))


def deaths(jobs: Iterable[JobView]) -> int:
    """How often in a row an app died before its first work was done.

    :param jobs: newest first, none of them alive.
    """
    count = 0
    for job in jobs:
        is_dead = job.active or job.state in ("failed", "lost")
        if not is_dead or job.worked:
            break
        count += job.started
    return count


def tidy(name: str, jobs: Iterable[JobView], keep: int = KEEP_LOGS) -> list[Action]:
    """Scratch of ended jobs goes, and so do all logs but the newest.

    :param jobs: newest first.
    """
    actions: list[Action] = []
    for number, job in enumerate(job for job in jobs if not job.active):
        if job.has_folder and number >= keep:
            actions.append(Tidy(name, "only the newest logs are kept", job.job_id, True))
        elif job.has_scratch:
            actions.append(Tidy(name, "its run has ended", job.job_id))
    return actions


def _plan_source(source: SourceView, at_once: bool) -> list[Action]:
    start = Start(source.name, "it should run", source.source_id)
    why_not = "" if should_run(source) else _why_not(source)
    actions = _plan_app(start, source.jobs, why_not, at_once)
    merged, backfills = _merged(source)
    actions += merged
    for backfill in backfills:
        actions += _plan_backfill(source, backfill, at_once)
    if source.ready and source.status == "active" and source.desired == "running":
        actions.append(Arm(source.name, f"{', '.join(source.ready)} can be cut over", source.source_id))
    keep = 0 if source.status == "dropped" else KEEP_LOGS
    of_backfills = sorted((job for backfill in source.backfills for job in backfill.jobs), key=lambda job: job.age)
    return [*actions, *tidy(source.name, source.jobs, keep), *tidy(source.name, of_backfills, keep)]


def _merged(source: SourceView) -> tuple[list[Action], list[BackfillView]]:
    """Merge backfills that wait before one of them is started; and the source's backfills after that."""
    backfills = {one.backfill_id: one for one in source.backfills}
    actions: list[Action] = []
    for group in source.merges if source.desired == "running" else ():
        parts = [backfills.pop(one) for one in group]
        tables = tuple(sorted(table for one in parts for table in one.tables))
        why = f"backfill {group[-1]} reads once for {', '.join(tables)}"
        actions.append(Merge(source.name, why, source.source_id, group))
        backfills[group[-1]] = replace(parts[-1], tables=tables, since=min(one.since for one in parts))
    return actions, list(backfills.values())


def _plan_backfill(source: SourceView, backfill: BackfillView, at_once: bool) -> list[Action]:
    whose = f" for {', '.join(backfill.tables)}" if backfill.tables else ""
    subject = f"backfill {backfill.backfill_id}{whose}"
    start = Start(subject, "it should run", source.source_id, backfill.backfill_id, backfill.since)
    why_not = "" if should_backfill(source, backfill) else _why_no_backfill(source, backfill)
    is_over = not backfill.tables
    actions: list[Action] = []
    for action in _plan_app(start, backfill.jobs, why_not, at_once):
        if isinstance(action, Stop):
            actions.append(replace(action, by_itself=is_over))
        elif isinstance(action, (Start, Wait)) and deaths(backfill.jobs) >= DEATHS:
            actions.append(_instead(action, backfill))
        else:
            actions.append(action)
    return actions


def _instead(start: Action, backfill: BackfillView) -> Action:
    """Instead of a start that would fail like those before, also if a user asked for it: ``RESUME`` tries again."""
    last, died = backfill.jobs[0].job_id, deaths(backfill.jobs)
    why = f"its app died {died} times in a row"
    if len(backfill.tables) > 1:
        return Isolate(start.subject, why, backfill.backfill_id, last)
    return Abandon(start.subject, why, backfill.backfill_id, last, died)


def _plan_app(start: Start, jobs: tuple[JobView, ...], why_not: str, at_once: bool) -> list[Action]:
    """For an app of either kind: give up jobs that are lost, stop those that should not run, start what should run.

    :param why_not: why it should not run; empty when it should.
    """
    lost = {job.job_id: why for job in jobs if job.active and (why := _lost(job))}
    actions: list[Action] = [GiveUp(start.subject, why, job_id, start.backfill_id) for job_id, why in lost.items()]
    alive = tuple(job.job_id for job in jobs if job.active and job.job_id not in lost)
    if why_not:
        if alive:
            actions.append(Stop(start.subject, why_not, alive))
    elif not alive:
        actions.append(_start(start, jobs, lost, at_once))
    return actions


def _lost(job: JobView) -> str:
    if job.process == "gone":
        return "its process is gone"
    if job.process == "absent" and job.age >= LAUNCH_SECONDS:
        return "its process never started"
    if job.heart_stopped:
        return "its heartbeat has stopped"
    return ""


def _why_not(source: SourceView) -> str:
    if source.status != "active":
        return f"the source is {source.status}"
    return "it was asked to stop" if source.desired != "running" else "it has no tables"


def _why_no_backfill(source: SourceView, backfill: BackfillView) -> str:
    if source.status == "dropped":
        return "the source is dropped"
    return "it has ended" if not backfill.tables else "its source was asked to stop"


def _start(start: Start, jobs: Iterable[JobView], lost: Iterable[str], at_once: bool) -> Action:
    ended = [job for job in jobs if not job.active]
    fresh = [JobView(j.job_id, "lost", ran=j.age) for j in jobs if j.job_id in set(lost)]
    left = backoff_seconds([*fresh, *ended]) - (0.0 if fresh else ended[0].ended_ago if ended else 0.0)
    if left > 0 and not at_once:
        return Wait(start.subject, f"its last run failed; next start in {left:.0f} s", left)
    return start
