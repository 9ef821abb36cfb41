"""The backfill app: brings tables up to a source's log, until they are cut over. Usage: backfill.py - < JOB"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.supervision.app_job import Parts, run_app
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.ticklog.backfill_rules import arriving
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.errors import BadJobFile
from airflow_provider_mzshare.storage.apps.backfill import Backfill


def _store(job: AppJob, catalog: Catalog) -> tuple[CatalogBackfillStore, BackfillId]:
    if job.backfill_id is None:
        raise BadJobFile(f"job {job.job_id} names no backfill")
    backfill_id = BackfillId(job.backfill_id)
    return CatalogBackfillStore(catalog, ItemId(job.source_id), backfill_id), backfill_id


def backfill(job: AppJob, catalog: Catalog, parts: Parts) -> Backfill:
    store, backfill_id = _store(job, catalog)
    return Backfill(store=store, backfill_id=backfill_id, **parts)


def keyed(job: AppJob, catalog: Catalog) -> Sequence[Member]:
    store, backfill_id = _store(job, catalog)
    mine = arriving(store.load(), backfill_id)
    return store.members([table_id for table_id, table in mine.items() if table.keyed])


if __name__ == "__main__":
    sys.exit(run_app(sys.argv[1:], __doc__ or "", backfill, keyed))
