"""Rows of a collection by their place upstream: which lie in a range, and whether any lies outside of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.places import Lane, Place
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.collection import collection_exists
from airflow_provider_mzshare.storage.collections.damage import brief
from airflow_provider_mzshare.storage.collections.rows import Snapshot, open_snapshot
from airflow_provider_mzshare.storage.fanout.plan import errors_schema


class PlacedRows:
    """One collection at one version; files whose statistics exclude a place are not opened.

    :param place: of the source's records.
    :param schema: the columns to read; those of an errors collection by default.
    """

    def __init__(
        self, root: str, collection_id: CollectionId, version: int, place: Place, schema: pa.Schema | None = None
    ) -> None:
        self._id, self._place, self._schema = collection_id, place, schema or errors_schema(place)
        # A table that has just joined may have no folders yet.
        exists = version > 0 or collection_exists(root, collection_id)
        self._snapshot: Snapshot | None = open_snapshot(root, collection_id, version, schema) if exists else None

    def between(self, lane: Lane, lower: int, upper: int) -> Sequence[pa.RecordBatch]:
        """All columns of the rows in ``[lower, upper)`` of a lane, in no order."""
        return list(self._read(self._schema.names, self._within(lane, lower, upper)).to_batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All columns of all rows, a batch at a time, in no order."""
        if self._snapshot is None:
            return
        try:
            yield from self._snapshot.scan(self._schema.names)
        except (OSError, pa.ArrowException) as error:
            raise WarehouseUnreachable(self._id, brief(error)) from error

    def first_outside(self, covered: Mapping[Lane, tuple[int, int]]) -> tuple[Any, ...] | None:
        """The place of the first row that is in none of the ranges."""
        ranges = [self._within(lane, *ends) for lane, ends in covered.items()]
        strays = self._read(self._place.names, ~reduce(or_, ranges) if ranges else None)
        first = strays.sort_by([(name, "ascending") for name in self._place.names]).slice(0, 1).to_pylist()
        return tuple(first[0].values()) if first else None

    def _read(self, columns: Sequence[str], only: pc.Expression | None) -> pa.Table:
        if self._snapshot is None:
            return self._schema.empty_table().select(list(columns))
        try:
            return self._snapshot.rows(columns, only)
        except (OSError, pa.ArrowException) as error:
            raise WarehouseUnreachable(self._id, brief(error)) from error

    def _within(self, lane: Lane, lower: int, upper: int) -> pc.Expression:
        column = self._place.column(self._place.counted)
        number, value = pc.field(column.name), Decimal if column.is_wide else int
        within = (number >= value(lower)) & (number < value(upper))
        if self._place.lane is None:
            return within
        return (pc.field(self._place.column(self._place.lane).name) == lane) & within
