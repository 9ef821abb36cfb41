"""Rows of data files that have deletion vectors: those that are still there. Which files these are, the log says.

Arrow knows no vectors. So such a file is read in the order of its rows, and a condition becomes a column: a row stays
if its vector leaves it and the condition holds. Files and row groups that cannot hold any are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyroaring import BitMap

from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector, read_vector, rows_of
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile, LogIncomplete, live_files

_FEATURE, _PROPERTY = "deletionVectors", "delta.enableDeletionVectors"
_HOLDS = "_mz_holds"
"""Whether a condition holds: beside the columns that were asked for. Names of tables' columns do not begin so."""


def has_vectors(table: DeltaTable) -> bool:
    """May files of it have vectors? delta-rs loads such a table, and says nothing of them."""
    features = table.protocol().reader_features or ()
    return _FEATURE in features or table.metadata().configuration.get(_PROPERTY) == "true"


@dataclass(frozen=True)
class MaskedFiles:
    """Files with vectors, open for any number of scans.

    :param dataset: of these files alone.
    :param vectors: by the files' paths.
    :param filesystem: the collection's folder.
    """

    dataset: pads.FileSystemDataset
    vectors: Mapping[str, Vector]
    filesystem: pafs.FileSystem
    _read: dict[str, BitMap] = field(default_factory=dict)

    def tables(
        self, columns: Sequence[str], only: pc.Expression | None, manner: Mapping[str, Any]
    ) -> Iterator[pa.Table]:
        """The rows that ``only`` admits, a row group at a time; each is read to its end.

        :param manner: how Arrow is to read.
        """
        wanted = _wanted(columns, only)
        for first, part, gone in self._parts(only):
            rows = part.to_table(self.dataset.schema, wanted, **manner)
            yield _left(rows, gone, first).select(list(columns))

    def batches(
        self, columns: Sequence[str], only: pc.Expression | None, manner: Mapping[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """The same, a batch at a time."""
        wanted = _wanted(columns, only)
        for first, part, gone in self._parts(only):
            for batch in part.to_batches(self.dataset.schema, wanted, **manner):
                yield _left(batch, gone, first).select(list(columns))
                first += batch.num_rows

    def _parts(self, only: pc.Expression | None) -> Iterator[tuple[int, pads.ParquetFileFragment, npt.NDArray[Any]]]:
        """Row groups that may have such rows: the number of the first row, and the rows of the file that are gone."""
        for file in self.dataset.get_fragments(filter=only):
            firsts = np.cumsum([0, *(group.num_rows for group in file.row_groups)]).tolist()
            gone = rows_of(self._gone(file.path))
            for part in file.split_by_row_group(only, schema=self.dataset.schema):
                (group,) = part.row_groups
                yield firsts[group.id], part, gone

    def _gone(self, path: str) -> BitMap:
        if path not in self._read:
            try:
                self._read[path] = read_vector(self.filesystem, self.vectors[path])
            except ValueError as error:
                # As Arrow says it of a file that is not whole: whoever reads rows knows what to do then.
                raise pa.ArrowInvalid(str(error)) from error
        return self._read[path]


def split_files(
    filesystem: pafs.FileSystem, version: int, schema: pa.Schema, reading: pafs.FileSystem
) -> tuple[pads.FileSystemDataset, MaskedFiles]:
    """The files of a version that have no vectors, and those that have.

    :param filesystem: the collection's folder.
    :param schema: the columns to read; those that a file does not have are NULL.
    :param reading: the same folder, by the file system that is to read data files.
    """
    try:
        files = live_files(filesystem, version).files.values()
    except LogIncomplete as error:
        raise DeltaError(str(error)) from error
    plain = dataset_of((file for file in files if not file.vector), schema, reading)
    return plain, masked_of(files, schema, filesystem, reading)


def masked_of(
    files: Iterable[LiveFile], schema: pa.Schema, filesystem: pafs.FileSystem, reading: pafs.FileSystem
) -> MaskedFiles:
    """Those of the files that have vectors."""
    masked = {file.path: (file, file.vector) for file in files if file.vector}
    dataset = dataset_of((file for file, _ in masked.values()), schema, reading)
    return MaskedFiles(dataset, {path: vector for path, (_, vector) in masked.items()}, filesystem)


def dataset_of(files: Iterable[LiveFile], schema: pa.Schema, filesystem: pafs.FileSystem) -> pads.FileSystemDataset:
    format = pads.ParquetFileFormat(default_fragment_scan_options=pads.ParquetFragmentScanOptions(pre_buffer=True))
    fragments = [
        format.make_fragment(file.path, filesystem, partition_expression=_bounds(file, schema)) for file in files
    ]
    return pads.FileSystemDataset(fragments, schema, format, filesystem)


def _bounds(file: LiveFile, schema: pa.Schema) -> pc.Expression:
    """What holds for every row of a file, by its statistics. A vector takes rows away, so bounds stay true with it.

    Only of whole numbers: other values may be cut short or rounded in a log, and our log has none of them.
    """
    stats = json.loads(file.stats) if file.stats else {}
    least, most, nulls = (stats.get(name) or {} for name in ("minValues", "maxValues", "nullCount"))
    numbers = (each.name for each in schema if pa.types.is_integer(each.type))
    known = (name for name in numbers if nulls.get(name) == 0 and name in least and name in most)
    bounds = (
        pc.field(name).is_valid() & (pc.field(name) >= least[name]) & (pc.field(name) <= most[name]) for name in known
    )
    return reduce(and_, bounds, pc.scalar(True))


def _wanted(columns: Sequence[str], only: pc.Expression | None) -> dict[str, pc.Expression]:
    holds = pc.scalar(True) if only is None else only
    return {name: pc.field(name) for name in columns} | {_HOLDS: holds}


def _left(rows: pa.Table | pa.RecordBatch, gone: npt.NDArray[Any], first: int) -> pa.Table | pa.RecordBatch:
    """:param first: the number that the first of ``rows`` has in its file."""
    stays = np.ones(rows.num_rows, np.bool_)
    start, end = np.searchsorted(gone, (first, first + rows.num_rows))
    stays[gone[start:end].astype(np.int64) - first] = False
    return rows.filter(pc.and_(pa.array(stays), pc.fill_null(rows.column(_HOLDS), False)))
