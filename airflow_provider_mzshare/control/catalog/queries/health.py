"""How a source is, told from what the catalog knows of it: the one definition, for status commands and relations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.jobs import LAUNCH_SECONDS, Job
from airflow_provider_mzshare.control.catalog.queries.overviews import SourceOverview
from airflow_provider_mzshare.control.sql.names import QualifiedName

Health = Literal["starting", "running", "idle", "stalled", "lost", "stopped", "failed", "waiting"]
_IDLE_TICKS = 3
"""An app is late when this many of its empty ticks are overdue."""


@dataclass(frozen=True)
class Verdict:
    health: Health
    reason: str = ""
    hint: str = ""


def judge(source: SourceOverview, job_alive: bool | None) -> Verdict:
    """As ``judge_source``. Of a source that runs well, the reason counts tables that do not, or that are slower."""
    verdict, job = judge_source(source, job_alive), source.job
    runs = job is not None and job.is_active and job_alive is not False and source.item.status != "stalled"
    return _with_slow_tables(_with_stalled_tables(verdict, source), source) if runs else verdict


def judge_source(source: SourceOverview, job_alive: bool | None) -> Verdict:
    """:param job_alive: of the newest job; None where this machine cannot tell."""
    item, job = source.item, source.job
    name = str(QualifiedName(*item.name))
    if item.status == "stalled":
        return Verdict("stalled", item.message or item.reason or "", _stall_hint(item.reason, name))
    if job is not None and job.is_active and job_alive is not False:
        return _judge_running(source, job, name)
    if job is not None and job.is_active:
        return Verdict("lost", f"the process of job {job.id} is gone", "mzshare reconcile")
    if item.desired != "running":
        return Verdict("stopped", "it was asked to stop", hints.start(item.name))
    if not sum(source.tables.values()):
        return Verdict("waiting", "it has no tables", hints.sql(f"CREATE TABLE … FROM SOURCE {name} …"))
    if job is not None and job.state in ("failed", "lost", "fenced"):
        health: Health = "lost" if job.state == "lost" else "failed"
        return Verdict(health, *hints.noted(job.error or f"job {job.id} ended as {job.state}", name))
    return Verdict("waiting", "nothing has started it yet", hints.start(item.name))


def _judge_running(source: SourceOverview, job: Job, name: str) -> Verdict:
    if job.stop_requested or job.state == "stopping":
        return Verdict("running", "it ends after its current tick")
    starting = job.state in ("launching", "starting")
    if job.error:
        # The error of a running job is what keeps it from going on at present.
        return Verdict("starting" if starting else "running", *hints.noted(job.error, name))
    if starting:
        return Verdict("starting")
    late = _IDLE_TICKS * source.item.settings.idle_tick_seconds + LAUNCH_SECONDS
    if source.age_ms is not None and source.age_ms / 1000 > late:
        why = f"it runs, but its last tick is {source.age_ms / 1000:.0f} s old"
        return Verdict("running", why, hints.command("logs", name))
    last = source.last_tick
    if last is not None and last.lower == last.upper and source.pending_tick is None:
        return Verdict("idle")
    return Verdict("running")


def _with_stalled_tables(verdict: Verdict, source: SourceOverview) -> Verdict:
    wrong = {what: source.tables[what] for what in ("stalled", "damaged") if source.tables.get(what)}
    if verdict.reason or not wrong:
        return verdict
    told = "; ".join(f"{count} of {sum(source.tables.values())} tables {what}" for what, count in wrong.items())
    return replace(verdict, reason=told, hint=hints.command("status", str(QualifiedName(*source.item.name))))


def _with_slow_tables(verdict: Verdict, source: SourceOverview) -> Verdict:
    count = source.indexes_on_disk
    if verdict.reason or not count:
        return verdict
    them = "the index of 1 keyed table is" if count == 1 else f"the indexes of {count} keyed tables are"
    return replace(verdict, reason=f"{them} on disk, which is slower: MZSHARE_KEY_INDEX_MB is too small for all")


def _stall_hint(reason: str | None, name: str) -> str:
    if reason == "catalog_behind":
        return "mzshare catalog repair"
    return f"{hints.sql(f'DROP SOURCE {name} CASCADE')} and create it again, once you know what was lost"
