"""What records mean that say how a row has changed, and have the row inside of their value.

Decided by each record alone: what it does to which key, or why it is an error row. A record is one event of a key, or
two if the row's key has changed: then the old key loses its row.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.registry import load
from airflow_provider_mzshare.envelopes.base import RECORD, ChangeEnvelope, Judged
from airflow_provider_mzshare.formats.base import Batch, Changes, Errors, Field, Reading
from airflow_provider_mzshare.storage.fanout.events import Events, first_errors, key_errors
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan
from airflow_provider_mzshare.storage.fanout.readers import Readers
from airflow_provider_mzshare.storage.fanout.rows import SharedColumn

_NO_FIELDS = b"{}"
"""In place of a row or a key that is not there: nothing is wrong with it."""
_ROW, _BEFORE, _KEY = "row", "before", "key"
Columns = Mapping[str, SharedColumn]
Mask = npt.NDArray[np.bool_]


class ChangedRows:
    """The records of a batch, taken apart for all members of one format and envelope. A column is made once."""

    def __init__(self, records: Batch, readers: Readers, member: MemberPlan) -> None:
        """:param member: any of them."""
        self._readers = readers
        self.changes: Changes = member.decoder.changes(records)
        envelope: ChangeEnvelope = load(member.envelope)
        self.judged: Judged = envelope.judge(self.changes)
        self.deletes = np.array(self.judged.deletes, np.bool_)
        self.clears = np.array(self.judged.clears, np.bool_)
        self._columns: dict[Hashable, SharedColumn] = {}
        self._readings: dict[Hashable, Reading] = {}

    def column(self, part: str, member: MemberPlan, field: Field, kind: str) -> SharedColumn:
        known = (part, field, kind)
        if known not in self._columns:
            self._columns[known] = SharedColumn(*self._reading(part, member).field(field, kind, as_text=False))
        return self._columns[known]

    def key_column(self, member: MemberPlan, field: Field, kind: str) -> SharedColumn:
        """Of the record's own key, read as ``KEY FORMAT`` says, or else as the value is."""
        known = (_KEY, member.key_format, field, kind)
        if known not in self._columns:
            column = self.key_reading(member).field(field, kind, as_text=False)
            errors = {row: f"key: {text}" for row, text in column.errors.items()}
            self._columns[known] = SharedColumn(column.values, errors)
        return self._columns[known]

    def key_reading(self, member: MemberPlan) -> Reading:
        known = (_KEY, member.key_format)
        if known not in self._readings:
            decoder = member.key_decoder
            read = self._readers.of_key(member, decoder) if decoder else self._readers.of(member)
            self._readings[known] = read(_batch(self.changes.keys))
        return self._readings[known]

    def _reading(self, part: str, member: MemberPlan) -> Reading:
        if part not in self._readings:
            values = self.changes.before
            if part == _ROW:
                values = _either(self.deletes, self.changes.before, self.changes.after)
            self._readings[part] = self._readers.of(member)(_batch(values))
        return self._readings[part]

    def events(self, member: MemberPlan, included: Sequence[SharedColumn], batch: pa.RecordBatch) -> Events:
        """What they are for a member.

        :param included: other parts of the record that are columns. :param batch: the records as they came.
        """
        return _Member(self, member, included, batch).events()


def _batch(values: pa.Array) -> Batch:
    """To be read like records, or like rows where they have columns. Nobody asks for their keys."""
    if pa.types.is_struct(values.type):
        nothing = pa.nulls(len(values), pa.binary())
        return Batch(pa.RecordBatch.from_arrays([nothing, nothing], names=["key", "value"]), values)
    texts = pc.fill_null(values, _NO_FIELDS)
    return Batch(pa.RecordBatch.from_arrays([texts, texts], names=["key", "value"]))


def _either(mask: Mask, one: pa.Array, other: pa.Array) -> pa.Array:
    if not mask.any():
        return other
    chosen = pa.array(mask)
    if not pa.types.is_struct(one.type):
        return pc.if_else(chosen, one, other)
    names = [each.name for each in one.type]
    columns = [pc.if_else(chosen, one.field(number), other.field(number)) for number in range(len(names))]
    return pa.StructArray.from_arrays(columns, names=names)


class _Member:
    """The events of one member."""

    def __init__(
        self, rows: ChangedRows, member: MemberPlan, included: Sequence[SharedColumn], batch: pa.RecordBatch
    ) -> None:
        self._rows, self._member, self._included, self._batch = rows, member, included, batch
        self._count = batch.num_rows

    def events(self) -> Events:
        keys = self._keys
        columns = [keys.get(name, column) for name, column in self._values.items()]
        columns += [column for name, column in keys.items() if name not in self._values]
        columns += self._included
        errors = self._errors()
        moved = np.array(sorted(self._moved_from - errors.keys()), np.intp)
        if not len(moved):
            return Events(columns, self._marks(), errors, self._passed)
        return self._with_moved(columns, errors, moved)

    # ── values and keys ───────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _kept(self) -> Mapping[int, Sequence[str]]:
        """By record, the member's columns whose values were not sent."""
        found = {}
        for row, fields in self._rows.changes.unavailable.items():
            named = zip(self._member.fields, self._member.columns, strict=True)
            mine = [name for field, (name, _) in named if field in fields]
            if mine and not self._rows.deletes[row]:
                found[row] = mine
        return found

    @cached_property
    def _values(self) -> Columns:
        """Of the row after the change; of a row that is taken away, what is known of it."""
        named = zip(self._member.fields, self._member.columns, strict=True)
        found = {name: self._rows.column(_ROW, self._member, field, kind) for field, (name, kind) in named}
        for name in {name for names in self._kept.values() for name in names}:
            found[name] = _emptied(found[name], [row for row, names in self._kept.items() if name in names])
        return found

    @cached_property
    def _keys(self) -> Columns:
        member = self._member
        if member.keys_in_value:
            return self._in_value
        decoder = member.key_decoder or member.decoder
        named = zip(decoder.fields(member.key_columns), member.key_columns, strict=True)
        return {name: self._rows.key_column(member, field, kind) for field, (name, kind) in named}

    @cached_property
    def _in_value(self) -> Columns:
        """Columns of the row. A record that takes a row away may not say them all: then its own key may."""
        found = {name: self._values[name] for name in self._member.keys}
        unknown = self._rows.deletes & ~self._rows.clears & _any_null(list(found.values()))
        if not unknown.any():
            return found
        for field, (name, kind) in zip(self._member.fields, self._member.columns, strict=True):
            if name in found:
                own = self._rows.key_column(self._member, field, kind)
                found[name] = _chosen(unknown, own, found[name])
        return found

    @cached_property
    def _passed(self) -> list[int]:
        """Tombstones that do not say the row's key: the deletion before each of them has said it."""
        if not self._member.keys_in_value:
            return []
        empty = np.array(self._rows.changes.empty, np.bool_)
        unsaid = empty & _any_null(list(self._keys.values()))
        return [int(row) for row in np.flatnonzero(unsaid) if row not in self._rows.judged.errors]

    # ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _errors(self) -> Errors:
        """The record's own first, then its key's, then that of its first bad column."""
        without_key = () if self._member.keys_in_value else np.flatnonzero(self._rows.changes.keys.is_null()).tolist()
        found: Errors = dict(self._rows.judged.errors)
        if not self._member.keys_in_value:
            whole = self._rows.key_reading(self._member).record_errors(self._member.asked_of_key)
            _add(found, {row: f"key: {text}" for row, text in whole.items() if row not in without_key})
        for row, names in self._kept.items():
            for name in self._member.keys:
                if name in names:
                    found.setdefault(row, f"key: {name} was not sent")
        _add(found, key_errors(self._keys, without_key))
        others = [column for name, column in self._values.items() if name not in self._keys]
        bad = dict(first_errors({}, [*others, *self._included]))
        _add(found, {row: text for row, text in bad.items() if not self._rows.deletes[row]})
        own = self._rows.judged.errors
        exempt = {*np.flatnonzero(self._rows.clears).tolist(), *self._passed}
        return {row: text for row, text in found.items() if row not in exempt or row in own}

    # ── what else an event says ───────────────────────────────────────────────────────────────────────────────────────

    def _marks(self) -> list[SharedColumn]:
        """Whether rows are taken away, the columns that are kept, and the records with such columns."""
        kept = {row: json.dumps(names) for row, names in self._kept.items()}
        texts = pa.array(map(kept.get, range(self._count)), pa.string()) if kept else pa.nulls(self._count, pa.string())
        records = [self._batch.column(name) for name in RECORD]
        noted = [pc.if_else(texts.is_valid(), one, pa.scalar(None, one.type)) for one in records]
        return list(map(SharedColumn, (pa.array(self._rows.deletes), pa.array(self._rows.clears), texts, *noted)))

    # ── keys that have changed ────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _before(self) -> Columns:
        named = zip(self._member.fields, self._member.columns, strict=True)
        keys = self._member.keys
        return {name: self._rows.column(_BEFORE, self._member, f, kind) for f, (name, kind) in named if name in keys}

    @cached_property
    def _moved_from(self) -> frozenset[int]:
        """Records whose row had another key before, if they say so. Where the key is the upstream's own, it is another
        record that takes the old row away."""
        if not self._member.keys_in_value or self._rows.changes.before.null_count == self._count:
            return frozenset()
        before = self._before
        same = [_equal(before[name].values, self._keys[name].values) for name in self._member.keys]
        moved = ~np.logical_and.reduce(same) & ~_any_null(list(before.values())) & ~self._rows.deletes
        return frozenset(int(row) for row in np.flatnonzero(moved))

    def _with_moved(self, columns: Sequence[SharedColumn], errors: Errors, moved: npt.NDArray[np.intp]) -> Events:
        """The old key's event behind the new one's, which may keep values of the old key's row."""
        records = np.concatenate([np.arange(self._count), moved])
        rows, gone = pa.array(records), pa.array(np.arange(len(records)) >= self._count)
        names = [name for name, _ in (*self._member.value_columns(), *self._member.include_columns())]
        shown = []
        for name, column in zip(names, columns, strict=True):
            values = column.values.take(rows)
            if name in self._before:
                values = pa.concat_arrays([column.values, self._before[name].values.take(pa.array(moved))])
            shown.append(SharedColumn(values))
        deletes, clears, *others = self._marks()
        taken = pc.or_(deletes.values.take(rows), gone)
        rest = [pc.if_else(gone, pa.scalar(None, one.values.type), one.values.take(rows)) for one in others]
        marks = [taken, clears.values.take(rows), *rest]
        return Events(shown, list(map(SharedColumn, marks)), errors, self._passed, records)


def _add(found: Errors, more: Errors) -> None:
    for row, text in more.items():
        found.setdefault(row, text)


def _any_null(columns: Sequence[SharedColumn]) -> Mask:
    found: Mask = np.logical_or.reduce([np.asarray(column.values.is_null()) for column in columns])
    return found


def _equal(one: pa.Array, other: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(pc.equal(one, other), False))


def _emptied(column: SharedColumn, rows: Sequence[int]) -> SharedColumn:
    """NULL, and no error, in some rows."""
    mask = np.zeros(len(column.values), np.bool_)
    mask[list(rows)] = True
    values = pc.if_else(pa.array(mask), pa.scalar(None, column.values.type), column.values)
    return SharedColumn(values, {row: text for row, text in column.errors.items() if not mask[row]})


def _chosen(rows: Mask, there: SharedColumn, elsewhere: SharedColumn) -> SharedColumn:
    """In these rows the one column, in others the other one."""
    errors = {row: text for row, text in elsewhere.errors.items() if not rows[row]}
    errors |= {row: text for row, text in there.errors.items() if rows[row]}
    return SharedColumn(pc.if_else(pa.array(rows), there.values, elsewhere.values), errors)
