"""Leases of sources and of backfills, as rows: written as the rules say. The caller has the source's lock."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import BackfillRow, SourceRow
from airflow_provider_mzshare.control.catalog.database.source_states import lease_of, lock_source
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.core.ticklog import rules
from airflow_provider_mzshare.core.ticklog.state import Lease

Leased = type[SourceRow] | type[BackfillRow]


def write_lease(session: Session, of: Leased, leased_id: str, before: Lease, after: Lease) -> None:
    same = (of.id == leased_id, of.lease_epoch == before.epoch, of.lease_beat == before.beat)
    values = {"lease_epoch": after.epoch, "lease_job": after.job_id, "lease_beat": after.beat}
    change(session, update(of).where(*same).values(values), 1, "the lease")


def give_up_lease(session: Session, job: Job) -> None:
    """Release the leases of a job whose process is known to be gone. Takes the source's lock.

    An ingestion app also holds those of the backfills that it executes itself.
    """
    source = lock_source(session, job.source_id)
    query = select(BackfillRow).where(BackfillRow.source_id == job.source_id, BackfillRow.lease_job == job.id)
    held: list[SourceRow | BackfillRow] = [source, *session.scalars(query.execution_options(populate_existing=True))]
    for row in held:
        before = lease_of(row)
        after = rules.give_up(before, job.id)
        if after != before:
            write_lease(session, type(row), row.id, before, after)
