"""Jobs, the runs of apps: written before the launch, moved on only from a state that was expected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import CursorResult, Select, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch, touch_job
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import JobRow, JobState
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId, new_job_id
from airflow_provider_mzshare.errors import UnknownItem

Kind = Literal["ingest", "backfill"]
ACTIVE: frozenset[JobState] = frozenset({"launching", "starting", "running", "stopping"})
"""A job in any other state has ended, for good."""
LAUNCH_SECONDS = 30.0
"""How long a job may have no process: its row is written before the process is started."""


@dataclass(frozen=True)
class Job:
    id: JobId
    kind: str
    source_id: ItemId
    state: JobState
    launcher: str
    master: str | None
    host: str | None
    pid: int | None
    pid_started: float | None
    folder: str
    created_at: int
    started_at: int | None
    ended_at: int | None
    stop_requested: bool
    error: str | None
    exit_code: int | None
    backfill_id: BackfillId | None = None
    """Set for jobs of kind ``backfill``, which serve some tables of the source and not the source itself."""
    machine: str | None = None
    """Where ``pid`` is valid: in one boot of one machine, as seen from its container."""
    ui_url: str | None = None
    running_at: int | None = None
    """When the app reported that it runs: its first work was done, or there was none to do."""

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


def create_job(
    session: Session,
    *,
    kind: str,
    source_id: ItemId,
    launcher: str,
    folder: str,
    master: str | None = None,
    job_id: JobId | None = None,
    backfill_id: BackfillId | None = None,
) -> JobId:
    """A job in ``launching``. To launch at most one, look at ``active_jobs`` behind the source's lock first."""
    chosen = job_id or new_job_id(kind)
    session.execute(
        insert(JobRow).values(
            id=chosen,
            kind=kind,
            source_id=source_id,
            backfill_id=backfill_id,
            state="launching",
            launcher=launcher,
            master=master,
            folder=folder,
            created_at=wall_ms(),
            stop_requested=False,
        )
    )
    touch(session, source_id)
    return chosen


def note_start(
    session: Session, job_id: JobId, *, pid: int, pid_started: float, host: str, machine: str | None = None
) -> bool:
    """``launching`` to ``starting``, told by the app itself. False: given up meanwhile, the app should end."""
    touch_job(session, job_id)
    process = {"pid": pid, "pid_started": pid_started, "host": host, "machine": machine}
    return _change(session, job_id, {"launching"}, {"state": "starting", "started_at": wall_ms(), **process})


def set_state(
    session: Session,
    job_id: JobId,
    to: JobState,
    *,
    expect: Collection[JobState],
    error: str | None = None,
    exit_code: int | None = None,
) -> bool:
    """Move a job on if it is in one of the expected states; False, and no change, when it is not."""
    touch_job(session, job_id)
    values: dict[str, Any] = {"state": to}
    if error is not None:
        values["error"] = error
    if exit_code is not None:
        values["exit_code"] = exit_code
    if to == "running":
        values["running_at"] = wall_ms()
    if to not in ACTIVE:
        values["ended_at"] = wall_ms()
    return _change(session, job_id, expect, values)


def note_ui(session: Session, job_id: JobId, url: str) -> None:
    """Where the pages of a running job's Spark are."""
    _change(session, job_id, ACTIVE, {"ui_url": url})


def note_trouble(session: Session, job_id: JobId, trouble: str | None) -> None:
    """Record what keeps a running job from going on; None when nothing does."""
    touch_job(session, job_id)
    _change(session, job_id, ACTIVE, {"error": trouble})


def request_stop(session: Session, job_id: JobId) -> bool:
    """Ask a job to end after its current tick; False when it has ended already."""
    return _change(session, job_id, ACTIVE, {"stop_requested": True})


def stop_requested(session: Session, job_id: JobId) -> bool:
    return get_job(session, job_id).stop_requested


def get_job(session: Session, job_id: JobId) -> Job:
    row = session.scalar(select(JobRow).where(JobRow.id == job_id).execution_options(populate_existing=True))
    if row is None:
        raise UnknownItem("job", job_id)
    return _job(row)


def active_jobs(
    session: Session,
    source_id: ItemId | None = None,
    *,
    kind: Kind | None = None,
    backfill_id: BackfillId | None = None,
) -> Sequence[Job]:
    """All that have not ended, newest first; of every kind unless one is asked for."""
    query = select(JobRow).where(JobRow.state.in_(ACTIVE)).order_by(JobRow.number.desc())
    if source_id is not None:
        query = query.where(JobRow.source_id == source_id)
    return _jobs(session, query, kind, backfill_id)


def last_jobs(
    session: Session,
    source_id: ItemId | None,
    limit: int = 10,
    *,
    kind: Kind | None = None,
    backfill_id: BackfillId | None = None,
) -> Sequence[Job]:
    """Newest first, of every kind unless one is asked for. The back-off counts these."""
    query = select(JobRow).order_by(JobRow.number.desc()).limit(limit)
    if source_id is not None:
        query = query.where(JobRow.source_id == source_id)
    return _jobs(session, query, kind, backfill_id)


def _jobs(session: Session, query: Select[JobRow], kind: Kind | None, backfill_id: BackfillId | None) -> Sequence[Job]:
    if kind is not None:
        query = query.where(JobRow.kind == kind)
    if backfill_id is not None:
        query = query.where(JobRow.backfill_id == backfill_id)
    return [_job(row) for row in session.scalars(query.execution_options(populate_existing=True))]


def _change(session: Session, job_id: JobId, expect: Collection[str], values: dict[str, Any]) -> bool:
    change = update(JobRow).where(JobRow.id == job_id, JobRow.state.in_(expect)).values(**values)
    result = session.execute(change, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", result).rowcount == 1


def _job(row: JobRow) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        source_id=row.source_id,
        state=row.state,
        launcher=row.launcher,
        master=row.master,
        host=row.host,
        machine=row.machine,
        pid=row.pid,
        pid_started=row.pid_started,
        folder=row.folder,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        stop_requested=row.stop_requested,
        error=row.error,
        exit_code=row.exit_code,
        backfill_id=row.backfill_id,
        ui_url=row.ui_url,
        running_at=row.running_at,
    )
