"""Checks a whole collection: its log against itself and the catalog, its files against the log. Repairs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyroaring import BitMap

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.collection import KEY_PROPERTY, Collection
from airflow_provider_mzshare.storage.collections.damage import Added, Damage, DamagedCollection, LogCheck
from airflow_provider_mzshare.storage.collections.faults import warehouse_fault
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import read_vector, staying
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from airflow_provider_mzshare.storage.fanout.hashing import FIRST, MODULUS, UNHASHED, hash_table

UNREADABLE = (OSError, pa.ArrowException, DeltaError, ValueError, KeyError, TypeError)
_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class Known:
    """What the catalog says of a collection.

    :param ticks: versions of the log, and the times of the ticks that they carry.
    :param rows: in all of them together, and the sum of their hashes, by the version of the hash that they have. Where
        rows change, both are what the commits have added, less what they have taken away.
    :param first: the oldest version that a read may still ask for.
    :param columns: from which tick on its rows have which columns, oldest first; all that there are, where it is empty.
        Compaction gives rows the columns that came later, as NULL: these were not hashed.
    """

    ticks: Mapping[int, int] = field(default_factory=dict)
    rows: int = 0
    hash: int = 0
    hash_version: int = FIRST
    first: int = 0
    columns: tuple[tuple[int, frozenset[str]], ...] = ()


@dataclass(frozen=True)
class Checked:
    collection_id: CollectionId
    entries: int = 0
    files: int = 0
    bytes: int = 0
    damages: tuple[Damage, ...] = ()


def check_collection(
    root: str, collection_id: CollectionId, known: Known | None = None, *, deep: bool = False, to: int | None = None
) -> Checked:
    """Check the whole log and every file that a read may need. Raises StorageFault if the storage itself fails.

    :param known: what the catalog says of the collection, to compare with.
    :param deep: also read every row, and compare the sum of their hashes.
    :param to: only what versions up to this one need.
    """
    try:
        return _Check(root, collection_id, known, deep, to).run()
    except TableNotFoundError:
        return Checked(collection_id, damages=(Damage(deltalog.LOG, "is missing, and so is its folder"),))
    except UNREADABLE as error:
        if fault := warehouse_fault(root, error):
            raise fault from error
        raise


def raise_if_damaged(collection: Collection, error: Exception) -> None:
    """Raise DamagedCollection if a damage explains why the collection could not be read."""
    if damages := check_collection(collection.root, collection.collection_id).damages:
        raise DamagedCollection(collection.collection_id, damages) from error


class _Check:
    def __init__(self, root: str, collection_id: CollectionId, known: Known | None, deep: bool, to: int | None) -> None:
        self._id, self._known, self._deep, self._to = collection_id, known, deep, to
        self._files = deltalog.open_filesystem(collection_uri(root, collection_id))
        self._rows = self._hash = self._bytes = 0
        self._changes_rows = False

    def run(self) -> Checked:
        log = LogCheck(self._files)
        self._changes_rows = KEY_PROPERTY in log.properties()
        newest = log.newest if self._to is None else self._to
        damages = [*log.damages, *self._disagreeing(log)]
        first = min(newest, max(log.base, self._known.first if self._known else newest))
        # The collection may have newer ticks than the catalog knew: only ticks that both have are summed up.
        both = max(self._known.ticks, default=newest) if self._known else newest
        needed, active = log.needed(first, newest), log.active(both)
        for path, forms in sorted(needed.items()):
            gone, broken = self._vectors(path, forms, active.get(path))
            problems = list(self._of_file(path, forms[-1], gone if path in active else None))
            damages += [*broken, *(Damage(path, problem) for problem in problems)]
        if self._deep and self._known and self._to is None and not damages:
            damages += self._sums()
        return Checked(self._id, len(log.listed.entries), len(needed), self._bytes, tuple(damages))

    def _disagreeing(self, log: LogCheck) -> Iterator[Damage]:
        """Every tick that the catalog knows must be in the log, except for those older than the log's first entry."""
        ticks = dict(sorted(self._known.ticks.items())) if self._known else {}
        if lost := [version for version in ticks if version > log.newest]:
            path, newest = deltalog.entry_path(lost[0]), ticks[lost[-1]]
            yield Damage(path, f"is missing: the catalog knows {len(lost)} ticks from there on, up to {newest}")
        for version, time in ticks.items():
            if entry := log.entries.get(version):
                found = entry.tick(self._id)
                if found is None or found.mz_timestamp != time:
                    has = f"the tick at {found.mz_timestamp}" if found else "no tick"
                    wanted = f"carries {has}, but the catalog says {time}"
                    yield Damage(deltalog.entry_path(version), wanted)

    def _vectors(self, path: str, forms: Sequence[Added], active: Added | None) -> tuple[BitMap, list[Damage]]:
        """The rows that are gone from a file as it is active, and what is wrong with any vector that it has had."""
        gone, broken = BitMap(), []
        for vector in dict.fromkeys(form.vector for form in forms if form.vector):
            try:
                found = read_vector(self._files, vector)
            except UNREADABLE as error:
                if fault_of(error):
                    raise
                problem = "is missing" if isinstance(error, FileNotFoundError) else "is not whole"
                broken.append(Damage(vector.path or path, f"{problem}: it has a deletion vector of {path}"))
                continue
            if len(found) != vector.cardinality or (
                forms[-1].rows is not None and found and found.max() >= forms[-1].rows
            ):
                broken.append(Damage(vector.path or path, f"does not fit: its vector is not one of {path}"))
            if active and vector == active.vector:
                gone = found
        return gone, broken

    def _of_file(self, path: str, added: Added, gone: BitMap | None) -> Iterator[str]:
        """:param gone: the rows that a vector takes away; None if the file is not active."""
        info = self._files.get_file_info(path)
        if info.type != pafs.FileType.File:
            yield "is missing"
            return
        self._bytes += info.size
        if info.size != added.size:
            yield f"has {info.size} bytes, but the log says {added.size}"
            return
        try:
            with self._files.open_input_file(path) as source:
                file = pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=self._deep)
                if added.rows is not None and file.metadata.num_rows != added.rows:
                    yield f"has {file.metadata.num_rows} rows, but the log says {added.rows}"
                    return
                if self._deep:
                    self._read(file, gone)
        except UNREADABLE as error:
            if fault_of(error):
                raise
            yield "cannot be read: its pages are damaged" if self._deep else "cannot be read: its footer is damaged"

    def _read(self, file: pq.ParquetFile, gone: BitMap | None) -> None:
        first = 0
        for whole in file.iter_batches(_BATCH_ROWS, use_threads=False):
            batch = whole.filter(pa.array(staying(gone, first, whole.num_rows))) if gone else whole
            first += whole.num_rows
            if gone is not None and self._known:
                self._rows += batch.num_rows
                version = self._known.hash_version
                self._hash = (self._hash + sum(hash_table(part, version) for part in self._parts(batch))) % MODULUS

    def _parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | pa.Table]:
        """The batch's rows with the columns that were hashed: those that they had when they were written. Where rows
        change, system columns are left out, because a commit tells by how much it has changed the sum of the others.
        """
        columns = self._known.columns if self._known else ()
        left_out = system_names(batch.schema.names) if self._changes_rows else ()
        if not columns:
            yield batch.select([name for name in batch.schema.names if name not in left_out])
        rows, tick = pa.Table.from_batches([batch]), pc.field(UNHASHED)
        for number, (first, names) in enumerate(columns, start=1):
            within = (tick >= first) & (tick < columns[number][0]) if number < len(columns) else tick >= first
            kept = [name for name in rows.schema.names if name in names and name not in left_out]
            yield rows.filter(within).select(kept)

    def _sums(self) -> Iterator[Damage]:
        assert self._known is not None
        if self._rows != self._known.rows:
            yield Damage("its files", f"hold {self._rows} rows, but the catalog says {self._known.rows}")
        elif self._hash != self._known.hash and not (self._changes_rows and self._known.columns):
            # A row that is taken away is hashed with the columns of that time, not with those of its own.
            yield Damage("its files", "do not hold the rows that were written: the sums of the hashes differ")
