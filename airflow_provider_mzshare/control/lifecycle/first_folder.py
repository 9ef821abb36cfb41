"""Makes the folder of a local warehouse for its first use: who pushes may be there before any app.

One that was used and is gone is on a disk that is not mounted: it must not come back empty.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import exists, or_, select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.journal_models import JournalSegmentRow
from airflow_provider_mzshare.control.catalog.database.models import CommitRow
from airflow_provider_mzshare.folders import make_folder
from airflow_provider_mzshare.storage.collections.durability import local_path


def make_first_folder(catalog: Catalog, warehouse: str, umask: int) -> None:
    path = local_path(warehouse)
    if path is None or Path(path).exists():
        return
    used = or_(exists(select(CommitRow.collection_id)), exists(select(JournalSegmentRow.journal)))
    with catalog.read() as session:
        if session.scalar(select(used)):
            return
    make_folder(Path(path), umask)
