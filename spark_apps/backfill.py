"""The backfill app: brings tables up to a source's log, until they are cut over. Usage: backfill.py - < JOB"""

from __future__ import annotations

import sys

from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.supervision.app_job import Parts, run_app
from airflow_provider_mzshare.core.ids import BackfillId
from airflow_provider_mzshare.errors import BadJobFile
from airflow_provider_mzshare.storage.apps.backfill import Backfill


def backfill(job: AppJob, catalog: Catalog, parts: Parts) -> Backfill:
    if job.backfill_id is None:
        raise BadJobFile(f"job {job.job_id} names no backfill")
    backfill_id = BackfillId(job.backfill_id)
    store = CatalogBackfillStore(catalog, parts["source_id"], backfill_id)
    return Backfill(store=store, backfill_id=backfill_id, **parts)


if __name__ == "__main__":
    sys.exit(run_app(sys.argv[1:], __doc__ or "", backfill))
