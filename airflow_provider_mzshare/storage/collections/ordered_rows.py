"""All rows of a snapshot in their order, a bounded part at a time, however many rows there are and however large.

Files are not sorted, so a part is a range of places, tick by tick: all rows of it are read and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.schema import TICK, system_names

if TYPE_CHECKING:
    from airflow_provider_mzshare.storage.collections.rows import Snapshot

PART_ROWS = 500_000
PART_BYTES = 128 << 20
"""The largest part. A single row may be larger; then it is a part by itself."""
BATCH_ROWS = 16_384
_BATCH_BYTES = 8 << 20
_SAMPLE_ROWS = 16

Place = tuple[Any, ...]
"""The values of the system columns, the tick first. A shorter place comes before all places that begin with it."""


class Range(NamedTuple):
    """Places from ``lower`` on and before ``upper``."""

    lower: Place
    upper: Place

    def rows(self, names: Sequence[str]) -> pc.Expression:
        """The condition also names the ticks alone, so that files are skipped by their statistics."""
        tick = pc.field(names[0])
        within = (tick >= self.lower[0]) & (tick <= self.upper[0])
        return within & ~_before(self.lower, names) & _before(self.upper, names)


def _before(place: Place, names: Sequence[str]) -> pc.Expression:
    column, value = pc.field(names[0]), place[0]
    if len(place) == 1:
        return column < value
    return (column < value) | ((column == value) & _before(place[1:], names[1:]))


class Ordered:
    """:param columns: the columns to return."""

    def __init__(
        self, snapshot: Snapshot, columns: Sequence[str], *, rows: int = PART_ROWS, size: int = PART_BYTES
    ) -> None:
        self._snapshot, self._columns, self._rows, self._size = snapshot, list(columns), rows, size
        self._names = system_names(snapshot.schema.names)
        self._order = [(name, "ascending") for name in self._names]
        self._scanned = [*columns, *(name for name in self._names if name not in columns)]
        self._row_bytes = 0.0
        """Bytes per row, the largest mean of a batch so far: it sizes the next batches. Files are compressed, so their
        size does not help."""

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        left = limit
        if left == 0:
            return
        for part in self._parts():
            for batch in self._sorted(part):
                taken = batch if left is None else batch.slice(0, left)
                yield taken
                if left is not None:
                    left -= taken.num_rows
                    if left <= 0:
                        return

    def _parts(self) -> Iterator[Range]:
        """Cut between ticks, by how many rows each tick has: that is cheap to count."""
        counts: dict[int, int] = {}
        for batch in self._snapshot.scan([TICK], batch_rows=BATCH_ROWS):
            for tick, count in zip(*np.unique(batch.column(0).to_numpy(), return_counts=True), strict=True):
                counts[int(tick)] = counts.get(int(tick), 0) + int(count)
        first, rows = None, 0
        for tick in sorted(counts):
            if first is not None and rows + counts[tick] > self._rows:
                yield Range((first,), (tick,))
                first, rows = None, 0
            first, rows = tick if first is None else first, rows + counts[tick]
        if first is not None:
            yield Range((first,), (max(counts) + 1,))

    def _sorted(self, part: Range) -> Iterator[pa.RecordBatch]:
        table = self._read(part)
        if table is None:
            for half in self._halves(part):
                yield from self._sorted(half)
            return
        yield from table.sort_by(self._order).select(self._columns).to_batches(max_chunksize=BATCH_ROWS)

    def _read(self, part: Range) -> pa.Table | None:
        """The part's rows; None if they are too many and the part can be cut."""
        kept: list[pa.RecordBatch] = []
        rows = size = 0
        if not self._row_bytes:
            first = next(self._snapshot.scan(self._scanned, part.rows(self._names), batch_rows=_SAMPLE_ROWS), None)
            self._row_bytes = first.nbytes / max(1, first.num_rows) if first is not None else 1.0
        batch_rows = max(1, min(BATCH_ROWS, int(_BATCH_BYTES / max(1.0, self._row_bytes))))
        for batch in self._snapshot.scan(self._scanned, part.rows(self._names), batch_rows=batch_rows):
            if batch.num_rows == 0:
                continue
            kept.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            self._row_bytes = max(self._row_bytes, batch.nbytes / batch.num_rows)
            if rows > 1 and (rows > self._rows or size > self._size):
                return None
        return pa.Table.from_batches(kept, self._snapshot.schema_of(self._scanned))

    def _halves(self, part: Range) -> tuple[Range, Range]:
        keys = self._snapshot.rows(self._names, part.rows(self._names)).sort_by(self._order)
        middle = tuple(keys.slice(keys.num_rows // 2, 1).to_pylist()[0].values())
        return Range(part.lower, middle), Range(middle, part.upper)
