"""What commits did to the rows of a collection, and by what the rows of two versions differ.

Which commits and versions these are is the catalog's business. A commit is read by its own log entry, and by the files
that this one names: what else is in the table costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.changes import Commit
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.ordered_rows import BATCH_ROWS
from airflow_provider_mzshare.storage.collections.rows import Snapshot, native_filesystem, open_snapshot
from airflow_provider_mzshare.storage.collections.summing import DIFF, Sum
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector
from airflow_provider_mzshare.storage.collections.vectors.committing import CHANGE_TYPE
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile
from airflow_provider_mzshare.storage.collections.vectors.masked_rows import dataset_of, masked_of

_BATCH_BYTES = 8 << 20
_COMING = pa.array(["insert", "update_postimage"])

Signed = Iterator[tuple[int, pa.RecordBatch]]
"""Rows, and whether they come (1) or go (-1)."""


@dataclass(frozen=True)
class Place:
    """A collection: its id, and where it is below the warehouse."""

    root: str
    collection_id: CollectionId
    path: str

    @property
    def uri(self) -> str:
        return collection_uri(self.root, self.path)

    @cached_property
    def filesystem(self) -> pafs.FileSystem:
        return deltalog.open_filesystem(self.uri)


@dataclass(frozen=True)
class Wanted:
    """:param shape: the columns that rows have, as ``open_snapshot`` has it. :param columns: those to return."""

    shape: pa.Schema
    columns: Sequence[str]

    @property
    def schema(self) -> pa.Schema:
        """Of changes: the columns, and how often the row comes or goes."""
        return pa.schema([*(self.shape.field(name) for name in self.columns), pa.field(DIFF, pa.int64())])


def changes_of(place: Place, commits: Sequence[Commit], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """What commits did, all together, in no order. No row both comes and goes."""
    entries = [_entry(place, commit) for commit in commits]
    if any([*entry.changes(), *_files(entry, "remove")] for entry in entries):
        rows = (signed for entry in entries for signed in _of_entry(place, entry, wanted))
        yield from _summed(rows, wanted)
        return
    for entry in entries:
        for batch in _rows(place, _files(entry, "add"), wanted.shape).scan(list(wanted.columns)):
            yield _signed(batch, 1, wanted)


def difference(
    old: tuple[Place, int] | None, new: tuple[Place, int] | None, wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """What leads from the rows of a collection at a version to those of another, in no order. None has no rows."""

    def rows() -> Signed:
        for side, sign in ((old, -1), (new, 1)):
            if side is not None:
                yield from ((sign, batch) for batch in _rows_at(*side, wanted))

    yield from _summed(rows(), wanted)


def snapshot_changes(place: Place, version: int, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """All rows of a version, as rows that come."""
    for batch in _rows_at(place, version, wanted):
        yield _signed(batch, 1, wanted)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: every small file gives a batch of its own. None is empty."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BATCH_ROWS or size >= _BATCH_BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows, size = [], 0, 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _rows_at(place: Place, version: int, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    snapshot = open_snapshot(place.root, place.path, version, wanted.shape)
    yield from snapshot.scan(list(wanted.columns))


def _entry(place: Place, commit: Commit) -> deltalog.Entry:
    """The entry that carries the commit. One that stands there now may be another's, put where ours was removed."""
    entry = deltalog.read_entry(place.filesystem, commit.version)
    tick = entry.tick(place.collection_id) if entry else None
    if entry is None or tick is None or tick.mz_timestamp != commit.mz_timestamp:
        raise FileNotFoundError(f"the log of {place.collection_id} no longer has the commit of {commit.mz_timestamp}")
    return entry


def _of_entry(place: Place, entry: deltalog.Entry, wanted: Wanted) -> Signed:
    """A change file tells all; without one, the rows of files that came less the rows of those that went."""
    names = list(wanted.columns)
    if paths := list(entry.changes()):
        files = [LiveFile(path, 0, "", 0) for path in paths]
        typed = wanted.shape.append(pa.field(CHANGE_TYPE, pa.string()))
        for batch in _rows(place, files, typed).scan([*names, CHANGE_TYPE]):
            comes = pc.is_in(batch.column(CHANGE_TYPE), _COMING)
            yield 1, batch.filter(comes).select(names)
            yield -1, batch.filter(pc.invert(comes)).select(names)
        return
    for kind, sign in (("remove", -1), ("add", 1)):
        for batch in _rows(place, _files(entry, kind), wanted.shape).scan(names):
            yield sign, batch


def _files(entry: deltalog.Entry, kind: str) -> list[LiveFile]:
    """Those that an entry adds or removes to change rows: a compaction changes none."""
    found = (action[kind] for action in entry.actions if kind in action)
    return [_file(action) for action in found if action["dataChange"]]


def _file(action: Mapping[str, Any]) -> LiveFile:
    """As an entry that adds or removes it says; of a removed file, the size may be missing."""
    return LiveFile(action["path"], action.get("size") or 0, "", 0, Vector.from_log(action.get("deletionVector")))


def _rows(place: Place, files: Iterable[LiveFile], shape: pa.Schema) -> Snapshot:
    """Of these files alone, without those that their vectors take away."""
    native = native_filesystem(place.uri)
    listed = list(files)
    plain = dataset_of((file for file in listed if not file.vector), shape, native or place.filesystem)
    masked = masked_of(listed, shape, place.filesystem, native or place.filesystem)
    return Snapshot(plain, native is not None, masked)


def _summed(rows: Signed, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    with Sum(wanted.schema) as total:
        for sign, batch in rows:
            if batch.num_rows:
                total.add(_signed(batch, sign, wanted))
        yield from total.batches()


def _signed(batch: pa.RecordBatch, sign: int, wanted: Wanted) -> pa.RecordBatch:
    counts = pa.repeat(pa.scalar(sign, pa.int64()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, counts], schema=wanted.schema)
