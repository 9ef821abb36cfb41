"""Jobs: written before the launch, moved on by compare-and-set."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.errors import UnknownItem
from tests.support.catalog import add_source


def _launch(catalog: Catalog, source: ItemId, job_id: str | None = None) -> JobId:
    with catalog.write() as session:
        return jobs.create_job(
            session,
            kind="ingest",
            source_id=source,
            launcher="process",
            master="local[2]",
            folder="jobs/x",
            job_id=JobId(job_id) if job_id else None,
        )


def test_a_job_goes_from_launching_to_its_end(catalog: Catalog) -> None:
    job_id = _launch(catalog, add_source(catalog))
    with catalog.write() as session:
        assert jobs.get_job(session, job_id).state == "launching"
        assert jobs.note_start(session, job_id, pid=77, pid_started=1234.5, host="here")
        assert jobs.set_state(session, job_id, "running", expect={"starting"})
    with catalog.read() as session:
        running = jobs.get_job(session, job_id)
    assert (running.state, running.pid, running.pid_started, running.host) == ("running", 77, 1234.5, "here")
    assert running.is_active
    assert running.started_at is not None
    assert running.ended_at is None
    with catalog.write() as session:
        assert jobs.set_state(session, job_id, "failed", expect=jobs.ACTIVE, error="boom", exit_code=3)
        ended = jobs.get_job(session, job_id)
    assert (ended.state, ended.error, ended.exit_code, ended.is_active) == ("failed", "boom", 3, False)
    assert ended.ended_at is not None


def test_a_state_that_was_not_expected_changes_nothing(catalog: Catalog) -> None:
    job_id = _launch(catalog, add_source(catalog))
    with catalog.write() as session:
        assert jobs.set_state(session, job_id, "lost", expect={"launching"})
        before = jobs.get_job(session, job_id)
        assert not jobs.note_start(session, job_id, pid=1, pid_started=1.0, host="x")
        assert not jobs.set_state(session, job_id, "running", expect={"starting"}, error="no")
        assert not jobs.request_stop(session, job_id)
        assert jobs.get_job(session, job_id) == before


def test_a_stop_is_asked_through_the_catalog(catalog: Catalog) -> None:
    job_id = _launch(catalog, add_source(catalog))
    with catalog.write() as session:
        assert not jobs.stop_requested(session, job_id)
        assert jobs.request_stop(session, job_id)
    with catalog.read() as session:
        assert jobs.stop_requested(session, job_id)


def test_the_last_jobs_come_newest_first_and_only_of_the_source(catalog: Catalog) -> None:
    first, second = add_source(catalog, "first"), add_source(catalog, "second")
    chosen = [_launch(catalog, first, f"job-{number}") for number in range(12)]
    _launch(catalog, second)
    with catalog.write() as session:
        jobs.set_state(session, chosen[-1], "lost", expect={"launching"})
        assert [job.id for job in jobs.last_jobs(session, first)] == chosen[:1:-1]
        assert [job.id for job in jobs.active_jobs(session, first)] == chosen[-2::-1]
        assert len(jobs.active_jobs(session)) == 12


def test_an_unknown_job_is_named(catalog: Catalog) -> None:
    with pytest.raises(UnknownItem, match="job 'nobody'"), catalog.read() as session:
        jobs.get_job(session, JobId("nobody"))


def test_jobs_of_backfills_are_told_apart_from_the_sources_own(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    asked: list[tuple[jobs.Kind, str | None]] = [
        ("ingest", None), ("backfill", "b-1"), ("backfill", "b-2"), ("backfill", "b-1"),
    ]  # fmt: skip
    with catalog.write() as session:
        ingest, first, other, second = (
            jobs.create_job(
                session, kind=kind, source_id=source_id, launcher="process", folder="f",
                backfill_id=BackfillId(backfill) if backfill else None,
            )
            for kind, backfill in asked
        )  # fmt: skip
        jobs.set_state(session, other, "finished", expect=jobs.ACTIVE)
    with catalog.read() as session:
        assert [job.id for job in jobs.last_jobs(session, source_id, kind="ingest")] == [ingest]
        assert [job.id for job in jobs.last_jobs(session, source_id, kind="backfill")] == [second, other, first]
        of_one = jobs.last_jobs(session, None, backfill_id=BackfillId("b-1"))
        assert [(job.id, job.backfill_id) for job in of_one] == [(second, "b-1"), (first, "b-1")]
        assert [job.id for job in jobs.active_jobs(session, source_id, kind="ingest")] == [ingest]
        assert [job.id for job in jobs.active_jobs(session, kind="backfill")] == [second, first]
        assert jobs.active_jobs(session, source_id, backfill_id=BackfillId("b-2")) == []
        assert len(jobs.active_jobs(session, source_id)) == 3
