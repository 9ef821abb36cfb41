"""A few messages as plain values, and how they become Arrow. Decides nothing else.

Arrow objects cost tens of microseconds, however small they are. So what is pushed one by one gets them once, together
with all that is written at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.storage.journal.cutting import (
    ROW,
    Row,
    digest,
    digest_of_rows,
    joined,
    stamped,
    weight_at_most,
)

FEW = 64
"""From so many on Arrow costs less than it saves, also in memory."""


class Rows(NamedTuple):
    """:param size: bytes of keys, values and headers."""

    rows: Sequence[Row]
    size: int

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> int:
        """As ``cutting.weight`` finds it."""
        return self.size + ROW * len(self.rows)

    def stamped(self, now_us: int) -> Rows:
        return Rows([(row[0], row[1], now_us, row[3]) if row[2] is None else row for row in self.rows], self.size)


Messages: TypeAlias = pa.RecordBatch | Rows


def as_arrow(messages: Messages) -> pa.RecordBatch:
    return _arrow(messages.rows) if isinstance(messages, Rows) else messages


def as_one_batch(parts: Sequence[Messages]) -> pa.RecordBatch:
    """In their order. Together they must be small enough for one batch."""
    batches: list[pa.RecordBatch] = []
    for are_rows, run in groupby(parts, key=lambda part: isinstance(part, Rows)):
        if are_rows:
            batches.append(_arrow(list(chain.from_iterable(part.rows for part in run))))
        else:
            batches += run
    return joined(batches)


def weight_of(messages: Messages) -> int:
    """At most: see ``cutting.weight_at_most``."""
    return messages.weight if isinstance(messages, Rows) else weight_at_most(messages)


def digest_of(messages: Messages) -> str:
    """See ``cutting.digest``."""
    return digest_of_rows(messages.rows) if isinstance(messages, Rows) else digest(messages)


def stamp(messages: Messages, now_us: int) -> Messages:
    """With this time where none was given."""
    return messages.stamped(now_us) if isinstance(messages, Rows) else stamped(messages, now_us)


def _arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    keys, values, stamps, headers = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [
        pa.nulls(len(rows), MESSAGES.field("position").type),
        pa.array(stamps, MESSAGES.field("timestamp").type),
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(headers, MESSAGES.field("headers").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGES)
