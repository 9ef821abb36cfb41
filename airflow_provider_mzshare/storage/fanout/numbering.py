"""Which tick a record belongs to: the one whose range holds its offset. Many records at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]


class TickNumbers:
    """:param first: the number of the first tick.
    :param ends: per partition, where each tick but the last one ends; nothing when there is only one.
    """

    def __init__(self, first: int, ends: Mapping[str, Sequence[int]]) -> None:
        self.first = first
        self._ends = {int(partition): np.asarray(offsets, np.int64) for partition, offsets in ends.items()}

    def of(self, batch: pa.RecordBatch) -> Numbers:
        """The tick of every record, which has a partition and an offset."""
        numbers = np.full(batch.num_rows, self.first, np.int64)
        if self._ends:
            partitions = batch.column("partition").to_numpy(zero_copy_only=False)
            offsets = batch.column("offset").to_numpy(zero_copy_only=False)
            for partition in np.unique(partitions).tolist():
                rows = partitions == partition
                numbers[rows] += np.searchsorted(self._ends[partition], offsets[rows], side="right")
        return numbers
