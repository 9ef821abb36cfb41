"""Decides what to start, stop, give up and tidy away; it looks at nothing itself and has no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

ACTIVE = frozenset({"launching", "starting", "running", "stopping"})
"""Job states that say a process should be there."""
_BAD_ENDS = frozenset({"failed", "lost", "fenced"})

LAUNCH_SECONDS = 30.0
"""So long may a job be without a process: its row is written first, then it is started."""
HEALTHY_SECONDS = 60.0
"""A run that lasted so long starts the back-off anew."""
BACKOFF_SECONDS, BACKOFF_CAP_SECONDS = 5.0, 300.0
KEEP_LOGS = 20

Process = Literal["alive", "gone", "absent", "unknown"]
"""``absent``: none was ever noted for the job. ``unknown``: it runs on another machine."""


@dataclass(frozen=True)
class JobView:
    """One job as it was found. Ages are for waiting and for people; nothing safe depends on them."""

    job_id: str
    state: str
    age: float = 0.0
    ran: float = 0.0
    ended_ago: float = 0.0
    process: Process = "absent"
    heart_stopped: bool = False
    """Its lease stood still for the whole time-to-live, by the looker's own clock."""
    has_scratch: bool = False
    has_folder: bool = False

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


@dataclass(frozen=True)
class SourceView:
    source_id: str
    name: str
    status: str
    desired: str
    tables: int
    """Tables in any state but dropped."""
    jobs: tuple[JobView, ...] = ()
    """Newest first."""


@dataclass(frozen=True)
class DroppedTable:
    """A table that is gone from the catalog's names, with the folders it still has in the warehouse."""

    table_id: str
    name: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    sources: tuple[SourceView, ...] = ()
    dropped: tuple[DroppedTable, ...] = ()


@dataclass(frozen=True)
class Action:
    """``subject`` is what a user calls it."""

    subject: str
    why: str = ""
    verb = "?"


@dataclass(frozen=True)
class GiveUp(Action):
    """Mark a job as lost, after killing whatever is left of it."""

    job_id: str = ""
    verb = "lost"


@dataclass(frozen=True)
class Stop(Action):
    job_ids: tuple[str, ...] = ()
    verb = "stop"


@dataclass(frozen=True)
class Start(Action):
    source_id: str = ""
    verb = "start"


@dataclass(frozen=True)
class Wait(Action):
    """It should run and is not started yet."""

    seconds: float = 0.0
    verb = "wait"


@dataclass(frozen=True)
class RemoveTable(Action):
    table: DroppedTable = field(default_factory=lambda: DroppedTable("", "", ()))
    verb = "remove"


@dataclass(frozen=True)
class Tidy(Action):
    """Remove an ended job's scratch, or its whole folder once its log is an old one."""

    job_id: str = ""
    whole: bool = False
    verb = "tidy"


def plan(overview: Overview, *, at_once: bool = False) -> list[Action]:
    """:param at_once: a user asked for a start: no back-off."""
    actions: list[Action] = []
    for source in overview.sources:
        actions += _plan_source(source, at_once)
    actions += [RemoveTable(t.name, "it was dropped", t) for t in overview.dropped]
    return actions


def should_run(source: SourceView) -> bool:
    return source.status == "active" and source.desired == "running" and source.tables > 0


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


def _plan_source(source: SourceView, at_once: bool) -> list[Action]:
    lost = {job.job_id: why for job in source.jobs if job.active and (why := _lost(job))}
    actions: list[Action] = [GiveUp(source.name, why, job_id) for job_id, why in lost.items()]
    alive = tuple(job.job_id for job in source.jobs if job.active and job.job_id not in lost)
    if not should_run(source):
        if alive:
            actions.append(Stop(source.name, _why_not(source), alive))
    elif not alive:
        actions.append(_start(source, lost, at_once))
    return actions + _tidy(source)


def _lost(job: JobView) -> str:
    if job.process == "gone":
        return "its process is gone"
    if job.process == "absent" and job.age >= LAUNCH_SECONDS:
        return "its process never came"
    if job.heart_stopped:
        return "its heart stands still"
    return ""


def _why_not(source: SourceView) -> str:
    if source.status != "active":
        return f"the source is {source.status}"
    return "it was asked to stop" if source.desired != "running" else "it has no tables"


def _start(source: SourceView, lost: Iterable[str], at_once: bool) -> Action:
    ended = [job for job in source.jobs if not job.active]
    fresh = [JobView(j.job_id, "lost", ran=j.age) for j in source.jobs if j.job_id in set(lost)]
    left = backoff_seconds([*fresh, *ended]) - (0.0 if fresh else ended[0].ended_ago if ended else 0.0)
    if left > 0 and not at_once:
        return Wait(source.name, f"it ended badly; next start in {left:.0f} s", left)
    return Start(source.name, "it should run", source.source_id)


def _tidy(source: SourceView) -> list[Action]:
    keep = 0 if source.status == "dropped" else KEEP_LOGS
    actions: list[Action] = []
    for number, job in enumerate(job for job in source.jobs if not job.active):
        if job.has_folder and number >= keep:
            actions.append(Tidy(source.name, "its log is an old one", job.job_id, True))
        elif job.has_scratch:
            actions.append(Tidy(source.name, "its run has ended", job.job_id))
    return actions
