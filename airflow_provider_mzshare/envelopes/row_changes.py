"""What changes of rows mean, with the row before and after inside of the record: for the envelopes that have such."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.envelopes.base import CLEARS, DELETES, KEPT, MARKS, Judged, Settled

if TYPE_CHECKING:
    from airflow_provider_mzshare.formats.base import Changes

_SETS = frozenset({"c", "u", "r"})
_ORDER = "_mz_order"
Key = tuple[Any, ...]
_NOT_SENT = 'field "{}": not sent, because it has not changed, and there is no row to take it from'


class RowChanges:
    """Operations ``c``, ``u`` and ``r`` set a row, ``d`` takes it away, ``t`` takes all away."""

    appends = False
    wraps = True

    def deletes(self, values: pa.Array) -> pa.Array:
        return values.is_null()

    def judge(self, changes: Changes) -> Judged:
        has_row = [not null for null in changes.after.is_null().to_pylist()]
        deletes = [op in ("d", "t") or empty for op, empty in zip(changes.ops, changes.empty, strict=True)]
        errors = dict(changes.errors)
        if set(changes.ops) <= _SETS and all(has_row):
            return Judged(deletes, [False] * len(deletes), errors)
        for row, (op, empty) in enumerate(zip(changes.ops, changes.empty, strict=True)):
            if row not in errors and not empty and (why := _why_not(op, has_row[row])):
                errors[row] = why
        return Judged(deletes, [op == "t" for op in changes.ops], errors)

    def fold(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
        return self.settle(events, before, keys).after

    def settle(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> Settled:
        """The last event of a key counts. Only keys that have an event with kept columns are followed one by one."""
        cleared = np.flatnonzero(np.asarray(events.column(CLEARS)))
        first = int(cleared[-1]) + 1 if len(cleared) else 0
        if not events.column(KEPT).length() - events.column(KEPT).null_count:
            return Settled(_last(events.slice(first), keys), {})
        followed = _Followed(events, before, keys)
        plain = events.slice(first)
        if followed.numbers:
            mine = np.ones(events.num_rows, np.bool_)
            mine[followed.numbers] = False
            plain = events.filter(pa.array(mine & (np.arange(events.num_rows) >= first)))
        return Settled(pa.concat_tables([_last(plain, keys), followed.rows()]).combine_chunks(), followed.refused)


def _why_not(op: str | None, has_row: bool) -> str | None:
    if op in _SETS:
        return None if has_row else 'field "after": missing'
    if op in ("d", "t"):
        return None
    return 'field "op": missing' if op is None else 'field "op": none of c, r, u, d and t'


def _last(events: pa.Table, keys: Sequence[str]) -> pa.Table:
    numbered = events.select(list(keys)).append_column(_ORDER, pa.array(np.arange(events.num_rows)))
    newest = events.take(numbered.group_by(list(keys)).aggregate([(_ORDER, "max")]).column(f"{_ORDER}_max"))
    return newest.filter(pc.invert(newest.column(DELETES))).drop_columns(
        [name for name in events.schema.names if name in MARKS]
    )


class _Row(NamedTuple):
    """A row that a key has, by numbers of rows of ``_Followed.all``.

    :param kept: for columns that are not the row's own, the row that has the value.
    """

    number: int
    kept: Mapping[str, int]

    def holder(self, column: str) -> int:
        return self.kept.get(column, self.number)


class _Followed:
    """Keys that have an event with kept columns, event by event. No value is looked at: rows are numbers."""

    def __init__(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> None:
        names, shape = list(keys), before.schema.names
        self._all = pa.concat_tables([before, events.select(shape).cast(before.schema)])
        self._offset = before.num_rows
        of_events = list(_keys(events, names))
        self._moved = _moved(events, of_events)
        kept = np.flatnonzero(events.column(KEPT).is_valid()).tolist()
        wanted = {of_events[number] for number in kept} | set(self._moved.values())
        clears = np.asarray(events.column(CLEARS)).tolist()
        self._states: dict[Key, _Row | None] = {
            key: _Row(number, {}) for number, key in enumerate(_keys(before, names)) if key in wanted
        }
        self.numbers: list[int] = []
        """Of the events of these keys."""
        self.refused: dict[int, str] = {}
        deletes, columns = events.column(DELETES).to_pylist(), events.column(KEPT).to_pylist()
        for number, key in enumerate(of_events):
            if clears[number]:
                self._states.clear()
            elif key in wanted:
                self.numbers.append(number)
                asked = json.loads(columns[number]) if columns[number] else []
                self._apply(number, key, deletes[number], [name for name in asked if name in shape])

    def _apply(self, number: int, key: Key, deletes: bool, asked: Sequence[str]) -> None:
        row = self._states.get(self._moved.get(number, key))
        if deletes:
            self._states[key] = None
        elif asked and row is None:
            self.refused[number] = _NOT_SENT.format(asked[0])
        else:
            found = {name: row.holder(name) for name in asked} if row else {}
            self._states[key] = _Row(self._offset + number, found)

    def rows(self) -> pa.Table:
        """Those that the keys have afterwards."""
        found = [row for row in self._states.values() if row is not None]
        mixed = {name for row in found for name in row.kept}
        return pa.Table.from_arrays(
            [self._all.column(name).take(_numbers(row.holder(name) if name in mixed else row.number for row in found))
             for name in self._all.schema.names],
            schema=self._all.schema,
        )  # fmt: skip


def _moved(events: pa.Table, keys: Sequence[Key]) -> dict[int, Key]:
    """The key that the row of an event with kept columns had before, if it was another one.

    The event that takes the old key's row away is of the same record, and stands behind it.
    """
    places = [events.column(name) for name in system_names(events.schema.names) if name not in MARKS]
    same = np.asarray(events.column(KEPT).is_valid())[:-1]
    for column in places:
        same = same & np.asarray(pc.equal(column.slice(1), column.slice(0, len(column) - 1)).fill_null(False))
    return {number: keys[number + 1] for number in np.flatnonzero(same).tolist()}


def _numbers(found: Iterator[int]) -> pa.Array:
    return pa.array(list(found), pa.int64())


def _keys(table: pa.Table, names: Sequence[str]) -> Iterator[Key]:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
