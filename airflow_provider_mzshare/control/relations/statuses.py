"""The history of statuses: a row whenever the status of a source or a table differs from its last row.

A status is derived from the catalog's state, by the same rules as ``mzshare status``, in the transaction that changes
the state. Processes are not checked: the death of a process counts once a reconciler has recorded it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import ItemRow, JobRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.database.object_models import StatusRow
from airflow_provider_mzshare.control.catalog.queries.health import Health, judge_source
from airflow_provider_mzshare.control.catalog.queries.overviews import (
    SourceOverview,
    TableOverview,
    current_overview,
    table_overviews,
)
from airflow_provider_mzshare.control.lifecycle.arrival_text import judge_arrival
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.core.ids import ItemId, JobId

Status = Literal["starting", "running", "idle", "paused", "stalled", "failed", "dropped"]

_STATUSES: dict[Health, Status] = {
    "starting": "starting",
    "waiting": "starting",
    "running": "running",
    "idle": "idle",
    "stopped": "paused",
    "stalled": "stalled",
    "lost": "failed",
    "failed": "failed",
}
_TROUBLE = ("stalled", "failed")


@dataclass(frozen=True)
class Standing:
    """How one object is. ``hint`` is the next step, if there is one."""

    status: Status
    error: str | None = None
    hint: str = ""

    @property
    def details(self) -> str | None:
        return json.dumps({"hints": [self.hint]}, ensure_ascii=False) if self.hint else None


def source_standing(source: SourceOverview) -> Standing:
    if source.item.status == "dropped":
        return Standing("dropped")
    # The age of the last tick depends on when somebody looks: it is no change of state.
    verdict = judge_source(replace(source, age_ms=None), None)
    status = _STATUSES[verdict.health]
    held_up = source.job is not None and source.job.is_active and source.job.error is not None
    return Standing(status, (verdict.reason or None) if status in _TROUBLE or held_up else None, verdict.hint)


def table_standing(table: TableOverview, source: SourceOverview) -> Standing:
    """A stalled table has its own status and reason; any other table has the status of the app that feeds it."""
    item, of_source = table.item, source_standing(source)
    name = str(QualifiedName(*item.name))
    if item.damage:
        # Damage comes first: the rows cannot be read, and only a new generation helps.
        wrong = "; ".join(filter(None, (item.damage, item.reason)))
        return Standing("stalled" if item.status == "stalled" else "failed", wrong, hints.resnapshot(name))
    if item.status == "stalled":
        return Standing("stalled", item.reason, hints.heal(name, item.reason))
    if item.status in ("backfilling", "converging") and of_source.status != "stalled":
        return _arriving(table, source, name)
    if item.status == "created" and of_source.status in ("running", "idle"):
        return Standing("starting")
    # A live table is not idle because no records came for a while: its source is.
    return replace(of_source, status="running") if of_source.status == "idle" else of_source


def _arriving(table: TableOverview, source: SourceOverview, name: str) -> Standing:
    arrival = table.arrival
    if arrival is None:
        return Standing("starting")
    verdict = judge_arrival(arrival, source, None, name)
    job = arrival.job
    if job is not None and job.is_active:
        if source.item.settings.backfill_rate == 0:
            return Standing("paused", None, verdict.hint)
        begins = job.state in ("launching", "starting")
        return Standing("starting" if begins else "running", verdict.held_up if job.error else None, verdict.hint)
    if source.item.desired != "running":
        return Standing("paused", None, verdict.hint)
    if job is not None and job.state in ("failed", "lost", "fenced"):
        # The place in the queue changes when others are started: that is no change of this table.
        failed = judge_arrival(replace(arrival, place=None), source, None, name)
        return Standing("failed", failed.held_up, verdict.hint)
    return Standing("starting", None, verdict.hint)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def note_statuses(session: Session, items: Collection[ItemId], jobs: Collection[JobId] = ()) -> None:
    """Record the status of these objects, and of all objects on the same sources, if it has changed."""
    found = dict(_dropped(session, items))
    for source_id in _sources_of(session, items, jobs):
        found |= dict(_of_source(session, source_id))
    last = _last(session, found)
    changed, same = [], []
    for item_id, standing in found.items():
        before = last.get(item_id)
        if before is None or (before.status, before.error) != (standing.status, standing.error):
            changed.append(_row(item_id, standing))
        elif before.details != standing.details:
            # The status is the same, but the text of the next step is not, for example after a rename.
            same.append({"number": before.number, "details": standing.details})
    if same:
        session.execute(update(StatusRow), same)
    if changed:
        session.execute(insert(StatusRow), changed)


def _row(item_id: ItemId, standing: Standing) -> dict[str, Any]:
    told = {"status": standing.status, "error": standing.error, "details": standing.details}
    return {"occurred_at": wall_ms(), "object_id": item_id, **told}


def _of_source(session: Session, source_id: ItemId) -> Iterator[tuple[ItemId, Standing]]:
    source = current_overview(session, source_id)
    of_source, tables = source_standing(source), table_overviews(session, source_id, source)
    for table in tables:
        standing = table_standing(table, source)
        if table.item.kind != "output":
            yield table.item.id, standing
        elif of_source.status in ("running", "idle") and standing.status != "running":
            # An old-style source that has the rows itself has the status of its output.
            of_source = standing
    yield source_id, of_source


def _dropped(session: Session, items: Collection[ItemId]) -> Iterator[tuple[ItemId, Standing]]:
    for some in batches(items):
        query = select(ItemRow.id).where(
            ItemRow.id.in_(some), ItemRow.dropped_at.is_not(None), ItemRow.kind.in_(("source", "subsource", "table"))
        )
        for item_id in session.scalars(query):
            yield item_id, Standing("dropped")


def _sources_of(session: Session, items: Collection[ItemId], jobs: Collection[JobId]) -> Sequence[ItemId]:
    """The sources of these items and jobs that are not dropped."""
    found: dict[ItemId, None] = {}
    for some in batches(items) if items else [[]]:
        fed = select(TableRow.source_id).where(TableRow.id.in_(some))
        served = select(JobRow.source_id).where(JobRow.id.in_(jobs))
        either = SourceRow.id.in_(some) | SourceRow.id.in_(fed) | SourceRow.id.in_(served)
        found |= dict.fromkeys(session.scalars(select(SourceRow.id).where(either, SourceRow.status != "dropped")))
    return list(found)


def _last(session: Session, items: Collection[ItemId]) -> dict[ItemId, StatusRow]:
    found: dict[ItemId, StatusRow] = {}
    for some in batches(items):
        newest = select(func.max(StatusRow.number)).where(StatusRow.object_id.in_(some)).group_by(StatusRow.object_id)
        rows = select(StatusRow).where(StatusRow.number.in_(newest)).execution_options(populate_existing=True)
        found |= {row.object_id: row for row in session.scalars(rows)}
    return found
