"""A range of an upstream, read again in parts and decoded as the table's specs say. Compares nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from airflow_provider_mzshare.connectors.base import Upstream
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.storage.collections.placed_rows import PlacedRows
from airflow_provider_mzshare.storage.comparison import ROLES
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.writing.member_plans import member_plan

PART_OFFSETS = 500_000
PART_BYTES = 64 << 20
"""How much of a partition is compared at once: this bounds the memory."""

Parts = dict[str, list[pa.RecordBatch]]
"""Rows by collection."""


def check_history(upstream: Upstream, scope: Scope) -> None:
    begin, show = upstream.begin_offsets(), scope.place.show
    for segment in scope.segments():
        if begin[segment.partition] > segment.lower:
            raise UpstreamChanged(
                "history_gone",
                f"partition {segment.partition} now begins at offset {show(begin[segment.partition])} upstream, "
                f"but the range begins at {show(segment.lower)}",
            )


class BySpec:
    """What the table's rows are, as one version of its spec says: how records decode, and the rows that are there."""

    def __init__(self, scope: Scope, warehouse: str, spec: TableSpec) -> None:
        self.member = member_plan(scope.table.id, spec, place=scope.place, hash_version=scope.hash_version)
        self._plan = FanoutPlan(1, (self.member,))
        self.data = PlacedRows(warehouse, scope.point.data, scope.point.data_version, scope.place, self.member.schema)

    def decode(self, records: Iterable[pa.RecordBatch]) -> Parts:
        """Where rows change, the data are what the records say of their keys."""
        parts: Parts = {role: [] for role in ROLES}
        for batch in records:
            (decoded,) = decode_batch(batch, self._plan).values()
            for role, rows in (("data", decoded.data), ("errors", decoded.errors)):
                if rows:
                    parts[role].append(rows.batch)
        return parts


def cut(
    batches: Iterable[pa.RecordBatch],
    lower: int,
    upper: int,
    counted: str,
    *,
    offsets: int = PART_OFFSETS,
    size: int = PART_BYTES,
) -> Iterator[tuple[int, int, Sequence[pa.RecordBatch]]]:
    """Parts of ``[lower, upper)`` without a gap between them, each with its records.

    Records of one number are in one part: a database's are those of one transaction.
    """
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        numbers = batch.column(counted)
        end = int(kept[-1].column(counted)[-1].as_py()) + 1 if kept else lower
        is_large = end - lower >= offsets or sum(each.nbytes for each in kept) >= size
        if is_large and numbers[0].as_py() >= end:
            yield lower, end, kept
            lower, kept = end, []
        kept.append(batch)
    if lower < upper:
        yield lower, upper, kept
