"""The ingestion app: one shared streaming read of a source that feeds all its tables. Usage: ingest.py - < JOB"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.lifecycle.journal_folders import make_journal_folder
from airflow_provider_mzshare.control.supervision.app_job import Parts, run_app
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.backfill_rules import to_index
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.storage.apps.ingestion import Ingestion


def ingestion(job: AppJob, catalog: Catalog, parts: Parts) -> Ingestion:
    source_id = parts["source_id"]
    backfills = partial(CatalogBackfillStore, catalog, source_id)
    folders = partial(make_journal_folder, catalog, job.warehouse, job.umask)
    return Ingestion(store=CatalogTickStore(catalog, source_id), backfills=backfills, make_folder=folders, **parts)


def keyed(job: AppJob, catalog: Catalog) -> Sequence[Member]:
    store = CatalogTickStore(catalog, ItemId(job.source_id))
    return store.generations(to_index(store.load()))


if __name__ == "__main__":
    sys.exit(run_app(sys.argv[1:], __doc__ or "", ingestion, keyed))
