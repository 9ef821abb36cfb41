"""The times of records: which of them a table can hold. The others are NULL, and an error where they are asked for.

A producer may write any 64 bits. Before 1900 Spark shifts a time by its machine's time zone and the old calendar, after
9999 most readers of a table cannot show it, and further out no timestamp has room for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FIRST_MS, LAST_MS = -2_208_988_800_000, 253_402_300_799_999
"""1900-01-01T00:00:00Z and the last millisecond of the year 9999."""

NOT_HELD = "timestamp: outside the years 1900 to 9999"

_TYPE = pa.timestamp("us", "UTC")


def from_millis(times: Sequence[int]) -> pa.Array:
    """As Kafka tells them."""
    millis = np.array(times, np.int64)
    outside = (millis < FIRST_MS) | (millis > LAST_MS)
    return pa.array(np.where(outside, 0, millis) * 1_000, pa.int64(), mask=outside).cast(_TYPE)


def hold(times: pa.Array) -> pa.Array:
    """The times that a table can hold, nearly always all; the others become NULL."""
    numbers = times.view(pa.int64())
    first, last = FIRST_MS * 1_000, LAST_MS * 1_000 + 999
    reached = pc.min_max(numbers).as_py()
    if reached["min"] is None or (first <= reached["min"] and reached["max"] <= last):
        return times
    inside = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
    return pc.if_else(inside, times, pa.scalar(None, times.type))
