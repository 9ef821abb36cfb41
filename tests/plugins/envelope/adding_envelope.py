"""An envelope of another package: a record adds to the row of its key, so a tick that is applied twice shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

DELETES = "_mz_deletes"


class Adding:
    """The first column adds up; the others are those of the last record. A record without a value begins anew."""

    name = "adding"
    appends = False

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        return None if "key" in include else "INCLUDE KEY"

    def deletes(self, values: pa.Array) -> pa.Array:
        return values.is_null()

    def fold(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
        counted = before.schema.names[0]
        rows = {tuple(row[key] for key in keys): row for row in before.to_pylist()}
        for event in events.to_pylist():
            key = tuple(event[name] for name in keys)
            earlier = rows.pop(key, None)
            if not event.pop(DELETES):
                event[counted] = (earlier[counted] if earlier else 0) + (event[counted] or 0)
                rows[key] = event
        return pa.Table.from_pylist(list(rows.values()), before.schema)


ADDING = Adding()
