"""Rows of a collection by their place upstream: which lie in a range, and whether any lies outside of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.collection import collection_exists
from airflow_provider_mzshare.storage.collections.damage import brief
from airflow_provider_mzshare.storage.collections.rows import Snapshot, open_snapshot
from airflow_provider_mzshare.storage.fanout.plan import errors_schema

_PLACE = ("_mz_partition", "_mz_offset")


class PlacedRows:
    """One collection at one version; files whose statistics exclude a place are not opened.

    :param schema: the columns to read; those of an errors collection by default.
    """

    def __init__(self, root: str, collection_id: CollectionId, version: int, schema: pa.Schema | None = None) -> None:
        self._id, self._schema = collection_id, schema or errors_schema()
        # A table that joined and got no rows yet may be without its folders.
        exists = version > 0 or collection_exists(root, collection_id)
        self._snapshot: Snapshot | None = open_snapshot(root, collection_id, version, schema) if exists else None

    def between(self, partition: int, lower: int, upper: int) -> Sequence[pa.RecordBatch]:
        """All columns of the rows in ``[lower, upper)`` of a partition, in no order."""
        return list(self._read(self._schema.names, _within(partition, lower, upper)).to_batches())

    def first_outside(self, covered: Mapping[int, tuple[int, int]]) -> tuple[int, int] | None:
        """Partition and offset of the first row that no range holds."""
        ranges = [_within(partition, *ends) for partition, ends in covered.items()]
        strays = self._read(_PLACE, ~reduce(or_, ranges) if ranges else None)
        first = strays.sort_by([(name, "ascending") for name in _PLACE]).slice(0, 1).to_pylist()
        return (first[0]["_mz_partition"], first[0]["_mz_offset"]) if first else None

    def _read(self, columns: Sequence[str], only: pc.Expression | None) -> pa.Table:
        if self._snapshot is None:
            return self._schema.empty_table().select(list(columns))
        try:
            return self._snapshot.rows(columns, only)
        except (OSError, pa.ArrowException) as error:
            raise WarehouseUnreachable(self._id, brief(error)) from error


def _within(partition: int, lower: int, upper: int) -> pc.Expression:
    its_partition, its_offset = (pc.field(name) for name in _PLACE)
    return (its_partition == partition) & (its_offset >= lower) & (its_offset < upper)
