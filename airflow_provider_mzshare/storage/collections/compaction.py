"""Compaction of rows that never change, by a table's owner between two of its ticks, and the two probes that tell
whether it can be trusted. Where rows change, vectors/rewriting.py writes it, and the committing thread puts it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from airflow_provider_mzshare.errors import WarehouseUnreachable
from airflow_provider_mzshare.storage.collections import log
from airflow_provider_mzshare.storage.collections.collection import KEEP_LOG, Collection
from airflow_provider_mzshare.storage.collections.damage import brief
from airflow_provider_mzshare.storage.collections.durability import local_path, sync_filesystem
from airflow_provider_mzshare.storage.collections.faults import check_room, warehouse_fault
from airflow_provider_mzshare.storage.collections.uris import collection_uri

TARGET_SIZE = 128 * 1024 * 1024
COMPRESSION = WriterProperties(compression="ZSTD", compression_level=1)
"""As the pass has it, for all that delta-rs writes. Its own level needs more time and saves no room."""
_RACERS, _ROUNDS, _PROBE = 4, 5, "probe"


@dataclass(frozen=True)
class Compaction:
    """The result. ``refused``: somebody else compacted meanwhile, and this call changed nothing."""

    files_before: int
    files_after: int
    refused: bool = False

    @property
    def done(self) -> bool:
        return self.files_after < self.files_before


def compact(collection: Collection, *, min_files: int, target_size: int = TARGET_SIZE) -> Compaction:
    """Merge files smaller than ``target_size`` once there are ``min_files`` of them. Rows and older versions stay."""
    collection.refresh()
    sizes = collection.table.get_add_actions().column("size_bytes").to_pylist()
    small = [size for size in sizes if size < target_size]
    if len(small) < max(2, min_files):
        return Compaction(len(sizes), len(sizes))
    # A compaction that fails halfway leaves files on a disk that has no room for them.
    check_room(collection.root, sum(small))
    try:
        collection.table.optimize.compact(
            target_size=target_size,
            writer_properties=COMPRESSION,
            commit_properties=CommitProperties(custom_metadata={"mz_compaction": "true"}),
            post_commithook_properties=KEEP_LOG,
        )
    except CommitFailedError:
        # No commit names its new files: maintenance removes them when they are a day old.
        return Compaction(len(sizes), len(sizes), refused=True)
    except (DeltaError, OSError) as error:
        if fault := warehouse_fault(collection.root, error):
            raise fault from error
        raise WarehouseUnreachable(collection.collection_id, f"compaction failed: {brief(error)}") from error
    # The newest version no longer has the small files: a power cut must not lose the large one.
    sync_filesystem(collection.root)
    collection.refresh()
    return Compaction(len(sizes), len(collection.table.get_add_actions().column("path")))


def compaction_is_safe() -> bool:
    """Does this deltalake refuse a compaction from a table loaded before another one? (1.6.6 doubles every row.)"""
    with tempfile.TemporaryDirectory(prefix="mzshare-probe-") as folder:
        rows = pa.table({"n": pa.array([1], pa.int64())})
        for _ in range(4):
            write_deltalake(folder, rows, mode="append")
        handles = DeltaTable(folder), DeltaTable(folder)
        for handle in handles:
            try:
                handle.optimize.compact()
            except CommitFailedError:
                continue
        # Rows are counted from the log, because the threads of a scan could outlive the command.
        return bool(sum(DeltaTable(folder).get_add_actions().column("num_records").to_pylist()) == 4)


def put_if_absent_works(root: str) -> bool:
    """Does storage let exactly one of several writers create a log entry? Races below ``root``, and tidies up."""
    name = f"_mzshare_probe_{secrets.token_hex(6)}"
    uri = collection_uri(root, name)
    try:
        DeltaTable.create(uri, pa.schema([("n", pa.int64())]))
        return all(_one_wins(uri, round_) for round_ in range(1, _ROUNDS + 1))
    except (DeltaError, OSError):
        return False
    finally:
        _remove(root, name)


def _one_wins(uri: str, round_: int) -> bool:
    """Several writers commit the same next version: one succeeds, and the entry has exactly its bytes."""
    handles = [DeltaTable(uri) for _ in range(_RACERS)]
    gate = threading.Barrier(_RACERS)

    def race(number: int) -> bool:
        gate.wait()
        try:
            _commit_mark(handles[number], round_ * _RACERS + number)
        except CommitFailedError:
            return False
        return True

    with ThreadPoolExecutor(_RACERS) as pool:
        winners = [number for number, won in enumerate(pool.map(race, range(_RACERS))) if won]
    entry = log.read_entry(log.open_filesystem(uri), round_)
    tick = entry.tick(_PROBE) if entry else None
    return len(winners) == 1 and tick is not None and tick.mz_timestamp == round_ * _RACERS + winners[0]


def _commit_mark(table: DeltaTable, mark: int) -> None:
    table.create_write_transaction(
        [],
        mode="append",
        schema=table.schema(),
        commit_properties=CommitProperties(app_transactions=[Transaction(_PROBE, mark)]),
    )


def _remove(root: str, name: str) -> None:
    path = local_path(root)
    if path is not None:
        shutil.rmtree(os.path.join(path, name), ignore_errors=True)
        return
    with contextlib.suppress(DeltaError, OSError):
        log.open_filesystem(root).delete_dir(name)
