"""Makes the folder of a journal, where nobody has written anything yet; never one whose disk is away."""

from __future__ import annotations

import errno
from pathlib import Path

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.queries.warehouse_use import is_used
from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import folder_of
from airflow_provider_mzshare.folders import make_folder
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.collections.faults import StorageFault, check_mounted
from airflow_provider_mzshare.storage.journal.write_errors import NotWritten


def make_journal_folder(catalog: Catalog, warehouse: str, umask: int, journal: JournalId) -> None:
    """A new home has no warehouse before somebody writes. One that was used and is not there is on a disk that is away.

    What journals hold is as private as all that apps write: this process may have another umask.
    """
    path = local_path(warehouse)
    if path is None:
        return
    with catalog.read() as session:
        used = is_used(session)
    try:
        if used:
            check_mounted(path)
        make_folder(Path(path, folder_of(journal)).parent, umask)
    except StorageFault as fault:
        raise NotWritten(path, OSError(errno.ENODEV, fault.detail)) from fault
    except OSError as error:
        raise NotWritten(path, error) from error
