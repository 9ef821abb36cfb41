"""The progress of a table that is being brought up, in words that people can act on. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.catalog.log.queue import Place
from airflow_provider_mzshare.control.catalog.queries.overviews import ArrivalOverview, SnapshotOverview, SourceOverview
from airflow_provider_mzshare.control.sql.names import QualifiedName

_CLOSE_TICKS = 2
"""Within so few ticks of the log's end, a backfill works tick by tick: its rate is that of the log."""
_SAMPLES = 2
"""Samples of the rate before a warning: the first group also has costs that come only once."""


@dataclass(frozen=True)
class Pace:
    """How fast a backfill is, against the log that it follows; in offsets per second."""

    rate: float | None
    log: float
    seconds_left: float | None
    """Until the backfill has caught up; None if that is not known."""
    falls_behind: bool = False


def pace_of(arrival: ArrivalOverview, source: SourceOverview) -> Pace:
    limit, runs = source.item.settings.backfill_rate, source.job is not None and source.job.is_active
    log = (source.rate or 0.0) if runs else 0.0
    if arrival.rate is None or arrival.backfill_id is None:
        return Pace(None, log, None)
    rate = arrival.rate if limit is None else min(arrival.rate, float(limit))
    gain, left = rate - log, arrival.total - arrival.done
    falls_behind = gain < 0 and arrival.lag > _CLOSE_TICKS and arrival.samples >= _SAMPLES
    return Pace(rate, log, left / gain if left and gain > 0 else None, falls_behind)


@dataclass(frozen=True)
class ArrivalVerdict:
    """:param held_up: what keeps it from going on; empty when nothing does."""

    reason: str
    hint: str = ""
    held_up: str = ""


def judge_arrival(
    arrival: ArrivalOverview, source: SourceOverview, job_alive: bool | None, name: str
) -> ArrivalVerdict:
    """:param job_alive: of the backfill's job; None where this machine cannot tell.
    :param name: the table's, as in SQL.
    """
    if arrival.status == "stalled":
        reason, hint = f"stalled: {arrival.reason}", hints.heal(name, arrival.reason)
        held_up = reason
    elif arrival.status == "indexing":
        held_up, hint = _without_app(source)
        reason = ", ".join([*_far(arrival), held_up or "its source's app makes its index and follows it meanwhile"])
    else:
        held_up, hint = _held_up(arrival, source, job_alive, name)
        if not held_up and not arrival.lag and arrival.status == "backfilling" and arrival.snapshot is None:
            hint = hints.command("wait", name)
        told = [*_far(arrival), held_up] if held_up else [*_far(arrival), *_told(arrival, pace_of(arrival, source))]
        reason = ", ".join([arrival.status, *told] if arrival.replaces else told)
    whole = f"generation {arrival.generation}: {reason}" if arrival.replaces else reason
    return ArrivalVerdict(whole, hint, held_up)


def _far(arrival: ArrivalOverview) -> list[str]:
    if arrival.snapshot is not None:
        return [_of_snapshot(arrival.snapshot), *(_ticks_behind(arrival) if arrival.snapshot.landed else ())]
    return _ticks_behind(arrival)


def _of_snapshot(snapshot: SnapshotOverview) -> str:
    if snapshot.landed:
        return "its snapshot is read, and it follows what was committed meanwhile"
    if snapshot.read is None:
        return "waits for its snapshot"
    return f"{snapshot.read:,} of about {snapshot.expected:,} rows of its snapshot are read"


def _ticks_behind(arrival: ArrivalOverview) -> list[str]:
    ticks = f"{arrival.lag} tick{'s' * (arrival.lag != 1)} behind"
    return [ticks, f"{arrival.done:,} of {arrival.total:,} offsets"]


def _told(arrival: ArrivalOverview, pace: Pace) -> list[str]:
    if arrival.snapshot is not None:
        return []
    if not arrival.lag:
        if arrival.status != "converging":
            return ["ready for the cutover, but nobody has asked for it yet"]
        return ["a tick makes it live once its index is made" if arrival.keyed else "the next tick makes it live"]
    if pace.rate is None:
        return []
    if pace.falls_behind:
        return [f"falls behind: {pace.rate:,.0f}/s against {pace.log:,.0f}/s"]
    left = [] if pace.seconds_left is None else [f"{pace.seconds_left:,.0f} s left"]
    return [f"{pace.rate:,.0f}/s", *left]


def _held_up(arrival: ArrivalOverview, source: SourceOverview, job_alive: bool | None, name: str) -> tuple[str, str]:
    """What keeps it from going on, if anything does, and the next step."""
    job, source_name = arrival.job, str(QualifiedName(*source.item.name))
    start = hints.start(source.item.name)
    if job is not None and job.is_active:
        if job_alive is False:
            return f"the process of job {job.id} is gone", "mzshare reconcile"
        if source.item.settings.backfill_rate == 0 and arrival.lag and not job.error:
            go_on = hints.sql(f"ALTER SOURCE {source_name} RESET (BACKFILL RATE)")
            return "paused: the source's BACKFILL RATE is 0", go_on
        return _while_it_runs(job, name)
    if source.item.desired != "running":
        return "its source was asked to stop", start
    if arrival.place is not None:
        return _queued(arrival.place, job, name)
    if job is not None and job.state == "failed":
        reason, hint = hints.noted(job.error or f"job {job.id} failed", name)
        return f"its backfill failed: {reason}", hint
    if job is not None and job.state in ("lost", "fenced"):
        return f"its backfill was lost and must be started again: {job.error or job.id}", "mzshare reconcile"
    return "nothing has started its backfill yet", start


def _without_app(source: SourceOverview) -> tuple[str, str]:
    """The app of its source brings it up: nothing else has to run."""
    if source.job is not None and source.job.is_active:
        return "", ""
    return "it goes on when its source runs", hints.start(source.item.name)


def _queued(place: Place, job: Job | None, name: str) -> tuple[str, str]:
    """A reconciler, or whoever waits for the table, starts the backfill in its turn: nothing else has to be done."""
    told = f"{place}: it starts when its turn comes"
    if job is not None and job.state in ("failed", "lost", "fenced"):
        told = f"{told}; its last job {job.state}: {hints.reason_of(job.error or job.id)}"
    return told, hints.command("wait", name)


def _while_it_runs(job: Job, name: str) -> tuple[str, str]:
    if job.stop_requested or job.state == "stopping":
        return "its backfill ends after the current ticks", ""
    if job.error:
        return hints.noted(job.error, name)
    return ("its backfill starts", "") if job.state in ("launching", "starting") else ("", "")
