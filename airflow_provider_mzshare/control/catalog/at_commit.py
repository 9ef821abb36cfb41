"""What a transaction leaves to be done at its end, so that what is shown agrees with what was changed.

Printed statements and the history of statuses follow from other rows. Whoever changes those rows says so here, and the
transaction does the rest before it commits: neither can be forgotten, and neither can be stale.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.core.ids import ItemId, JobId

_DEFINITIONS = "mzshare.definitions"
_ITEMS = "mzshare.touched_items"
_JOBS = "mzshare.touched_jobs"


def definitions_change(session: Session) -> None:
    """Names or specs may change in this transaction."""
    session.info[_DEFINITIONS] = True


def touch(session: Session, item_id: ItemId) -> None:
    """The status of this source or table may be another one now."""
    session.info.setdefault(_ITEMS, set()).add(item_id)


def touch_job(session: Session, job_id: JobId) -> None:
    """The same for what this job serves."""
    session.info.setdefault(_JOBS, set()).add(job_id)


def settle(session: Session) -> None:
    touched: set[ItemId] = session.info.pop(_ITEMS, set())
    jobs: set[JobId] = session.info.pop(_JOBS, set())
    if session.info.pop(_DEFINITIONS, False):
        from airflow_provider_mzshare.control.relations.create_sql import refresh_create_sql

        touched |= refresh_create_sql(session)
    if touched or jobs:
        from airflow_provider_mzshare.control.relations.statuses import note_statuses

        note_statuses(session, touched, jobs)
