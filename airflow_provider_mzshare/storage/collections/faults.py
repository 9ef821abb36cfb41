"""The error for a storage that is full, read-only or away, and the checks that find it. No table is to blame."""

from __future__ import annotations

import os
import shlex
import shutil

from airflow_provider_mzshare.errors import JobFailed, TransientError
from airflow_provider_mzshare.storage.collections.durability import local_path, probe_storage
from airflow_provider_mzshare.storage.fanout.fault_numbers import Fault, fault_of

_WORDS: dict[Fault, str] = {"full": "has no free space", "read_only": "is read-only", "away": "does not answer"}


class StorageFault(TransientError):
    """The app waits until it is over: no table leaves because of it, and no attempt is counted.

    :param place: a path or URI. :param what: what it is for.
    """

    def __init__(self, what: str, place: str, fault: Fault, detail: str) -> None:
        self.what, self.place, self.fault, self.detail = what, place, fault, detail
        path = local_path(place)
        look = f"free some space there (df -h {shlex.quote(path)})" if fault == "full" and path else "check its mount"
        super().__init__(f"{what} {place} {_WORDS[fault]}: {detail}", hint=f"{look}; then the app goes on by itself")


class SparkLost(JobFailed):
    """Spark has ended while its storage was full or away: a new process is needed, and no table is to blame."""


def warehouse_fault(root: str, error: BaseException) -> StorageFault | None:
    """The StorageFault for an error that the warehouse caused; None for any other error."""
    if isinstance(error, StorageFault):
        return error
    fault = fault_of(error)
    return StorageFault("the warehouse", root, fault, " ".join(str(error).split())[:300]) if fault else None


def check_takes_files(what: str, place: str) -> None:
    """Raise StorageFault when nothing can be written below a local ``place``, whatever the reason."""
    try:
        probe_storage(place)
    except OSError as error:
        raise StorageFault(what, place, fault_of(error) or "away", f"no file can be created there: {error}") from error


def check_room(root: str, size: int) -> None:
    """Raise StorageFault if a local warehouse has fewer than ``size`` bytes left."""
    path = local_path(root)
    if path is not None and (free := shutil.disk_usage(path).free) < size:
        raise StorageFault("the warehouse", root, "full", f"{size} bytes are needed, {free} are left")


def check_mounted(root: str) -> None:
    """Raise StorageFault when a local warehouse that has had collections is gone or empty.

    If its disk is not mounted, the folder is empty: it must not be written to as if it were a new warehouse.
    """
    path = local_path(root)
    if path is None:
        return
    try:
        with os.scandir(path) as found:
            if any(entry.is_dir() for entry in found):
                return
        why = "it is empty; is its disk mounted?"
    except OSError as error:
        why = f"{error.strerror}; is its disk mounted?"
    raise StorageFault("the warehouse", root, "away", why)
