"""ENVELOPE UPSERT: a record sets the row of its key, and a record without a value takes it away."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.envelopes.base import DELETES

_ORDER = "_mz_order"


class Upsert:
    name = "upsert"
    appends = False
    last_record_counts = True

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        return None if "key" in include else "INCLUDE KEY"

    def deletes(self, values: pa.Array) -> pa.Array:
        return values.is_null()

    def fold(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
        """The last record of a key counts, whatever was there before."""
        numbered = events.select(list(keys)).append_column(_ORDER, pa.array(np.arange(events.num_rows)))
        last = numbered.group_by(list(keys)).aggregate([(_ORDER, "max")]).column(f"{_ORDER}_max")
        newest = events.take(last)
        return newest.filter(pc.invert(newest.column(DELETES))).drop_columns([DELETES])


UPSERT = Upsert()
