"""The queue of backfills that wait for an app. How many run is counted in the transaction that writes a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    CounterRow,
    JobRow,
    ReplacementRow,
    SourceRow,
    TableRow,
)
from airflow_provider_mzshare.control.catalog.jobs import ACTIVE
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.ticklog.backfill_rules import BY_AN_APP

_RUNS = exists().where(JobRow.backfill_id == BackfillRow.id, JobRow.state.in_(ACTIVE))
_RAN = exists().where(JobRow.backfill_id == BackfillRow.id)


@dataclass(frozen=True)
class Queued:
    """A backfill that was to be started while too many ran. :param since: its place: the smallest is next."""

    backfill_id: BackfillId
    source_id: ItemId
    since: int


@dataclass(frozen=True)
class Place:
    """In the queue, from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"queued, {ordinal(self.number)} of {self.of}"


def ordinal(number: int) -> str:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def lock_starts(session: Session) -> None:
    """Nobody else starts a backfill's app, of any source, until the transaction ends. Taken after a source's lock."""
    session.execute(select(CounterRow.value).where(CounterRow.name == "backfills").with_for_update()).one()


def running_backfills(session: Session) -> int:
    """How many have a job that has not ended, of all sources. Behind ``lock_starts`` none can be added."""
    active = select(func.count()).where(JobRow.kind == "backfill", JobRow.state.in_(ACTIVE))
    return session.scalar(active) or 0


def queue(session: Session) -> Sequence[Queued]:
    """Who waits for an app, in the order in which they get one; those that should not run are left out."""
    own = BackfillRow.id
    brought = [exists().where(row.backfill_id == own, row.status.in_(BY_AN_APP)) for row in (TableRow, ReplacementRow)]
    query = (
        select(BackfillRow.id, BackfillRow.source_id, BackfillRow.queued_at)
        .join(SourceRow, SourceRow.id == BackfillRow.source_id)
        .where(BackfillRow.queued_at.is_not(None), SourceRow.status != "dropped", SourceRow.desired == "running")
        .where(brought[0] | brought[1], ~_RUNS)
        .order_by(BackfillRow.queued_at, BackfillRow.id)
    )
    return [Queued(row.id, row.source_id, row.queued_at) for row in session.execute(query)]


def places(session: Session) -> dict[BackfillId, Place]:
    found = queue(session)
    return {one.backfill_id: Place(number, len(found)) for number, one in enumerate(found, start=1)}


def since_of(session: Session, backfill_ids: Sequence[BackfillId]) -> dict[BackfillId, int]:
    """Their places in the queue, or those they would get: a backfill that never ran is placed by when it was made."""
    query = select(BackfillRow.id, BackfillRow.queued_at, BackfillRow.created_at, _RAN.label("ran"))
    found = session.execute(query.where(BackfillRow.id.in_(backfill_ids)))
    return {row.id: row.queued_at or (wall_ms() if row.ran else row.created_at) for row in found}


def enter_queue(session: Session, source_id: ItemId, backfill_id: BackfillId, *, since: int | None = None) -> None:
    """The backfill waits for an app from now on.

    :param since: its place; by default the one that ``since_of`` says.
    """
    place = since_of(session, [backfill_id])[backfill_id] if since is None else since
    _set(session, backfill_id, place)
    touch(session, source_id)


def leave_queue(session: Session, backfill_id: BackfillId) -> None:
    _set(session, backfill_id, None)


def _set(session: Session, backfill_id: BackfillId, value: int | None) -> None:
    change = update(BackfillRow).where(BackfillRow.id == backfill_id).values(queued_at=value)
    session.execute(change, execution_options={"synchronize_session": False})
