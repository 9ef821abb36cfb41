"""Which tick a record belongs to: the one whose range holds its place. Many records at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors.places import PARTITIONED, Lane, Place

Numbers = npt.NDArray[np.int64]


class TickNumbers:
    """:param first: the number of the first tick.
    :param ends: per lane, where each tick but the last one ends; nothing when there is only one.
    """

    def __init__(self, first: int, ends: Mapping[str, Sequence[int]], place: Place = PARTITIONED) -> None:
        self.first, self.place = first, place
        kind: Any = object if place.column(place.counted).is_wide else np.int64
        self._ends: dict[Lane, npt.NDArray[Any]] = {
            place.lane_of(lane): np.asarray(numbers, kind) for lane, numbers in ends.items()
        }

    def of(self, batch: pa.RecordBatch) -> Numbers:
        """The tick of every record, from its place."""
        numbers = np.full(batch.num_rows, self.first, np.int64)
        if self._ends:
            counted = batch.column(self.place.counted).to_numpy(zero_copy_only=False)
            if self.place.lane is None:
                numbers += np.searchsorted(self._ends[self.place.only_lane], counted, side="right")
                return numbers
            lanes = batch.column(self.place.lane).to_numpy(zero_copy_only=False)
            for lane in np.unique(lanes).tolist():
                rows = lanes == lane
                numbers[rows] += np.searchsorted(self._ends[lane], counted[rows], side="right")
        return numbers
