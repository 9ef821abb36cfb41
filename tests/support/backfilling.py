"""A backfill that a test drives as its app would, through the catalog alone: it claims, follows, and writes no file."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog.backfill_rules import arriving
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Outcome
from tests.support.catalog import Log, add_source, add_tables


class Backfilling:
    """A backfill of a source, the newest unless told otherwise, with a job that holds its lease."""

    def __init__(
        self, catalog: Catalog, source_id: ItemId, *, job: str = "backfill-1", backfill_id: BackfillId | None = None
    ) -> None:
        self.catalog, self.source_id = catalog, source_id
        with catalog.read() as session:
            self.id: BackfillId = backfill_id or active_backfills(session, source_id)[-1].id
        self.store = CatalogBackfillStore(catalog, source_id, self.id)
        self.job = self.launch(job)
        self.holder = self.store.claim(self.job)

    def launch(self, job: str) -> JobId:
        with self.catalog.write() as session:
            jobs.create_job(
                session,
                kind="backfill",
                source_id=self.source_id,
                launcher="process",
                folder="",
                job_id=JobId(job),
                backfill_id=self.id,
            )
            jobs.note_start(session, JobId(job), pid=1, pid_started=1.0, host="h")
        return JobId(job)

    def end(self, state: jobs.JobState, error: str | None = None) -> None:
        with self.catalog.write() as session:
            assert jobs.set_state(session, self.job, state, expect=jobs.ACTIVE, error=error)

    def follow(self, *, ticks: int = 1_000_000, left: Sequence[ItemId] = (), rows: int = 0) -> None:
        """Take the tables so many ticks further, at most to the end of the log."""
        mine = arriving(self.store.load(), self.id)
        first = min(table.next_tick for table in mine.values())
        last = self.store.ticks(first, ticks)[-1]
        outcomes: dict[ItemId, Outcome] = {t: Left("disk on fire") if t in left else Done(rows=rows) for t in mine}
        self.store.follow(self.holder, first=first, last=last, outcomes=outcomes, stats={})

    def arm(self) -> None:
        with self.catalog.write() as session:
            for table_id in arriving(self.store.load(), self.id):
                assert arm_table(session, table_id)


def add_late_tables(catalog: Catalog, *names: str, source: str = "s", ticks: int = 3) -> tuple[Log, list[ItemId]]:
    """A source with a live table ``<source>_first`` and some ticks, and tables that came after them."""
    source_id = add_source(catalog, source)
    add_tables(catalog, source_id, f"{source}_first")
    log = Log(catalog, source_id, job=f"ingest-{source}")
    for _ in range(ticks):
        log.tick(10)
    return log, add_tables(catalog, source_id, *names)
