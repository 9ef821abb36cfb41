"""One batch of records to the good and the bad rows of every member; reads and writes no file.

Whatever the number of tables, a record is parsed once and each distinct (field, type) is converted and hashed once.
Tables that take the same rows share the columns cut from the batch. Those with the same columns also share the hash.
A bad field is an error only for tables that use it. If a record has several errors, a table gets the first in the
order of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors import record_times
from airflow_provider_mzshare.connectors.places import Lane
from airflow_provider_mzshare.connectors.records import ROW, as_records, as_values
from airflow_provider_mzshare.formats.base import Batch, Column, Errors, Field, Reading, utf8
from airflow_provider_mzshare.storage.fanout.changes import ChangedRows
from airflow_provider_mzshare.storage.fanout.events import Events, events_of
from airflow_provider_mzshare.storage.fanout.hashing import hash_table, row_hash
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.readers import Readers
from airflow_provider_mzshare.storage.fanout.references import Said
from airflow_provider_mzshare.storage.fanout.rows import Chosen, Few, Rows, SharedColumn, bounds_of
from airflow_provider_mzshare.storage.fanout.seen import Seen


@dataclass(frozen=True)
class Decoded:
    """What one batch gives to one member; None if there are no rows."""

    data: Rows | None
    errors: Rows | None


def decode_batch(batch: pa.RecordBatch, plan: FanoutPlan) -> dict[str, Decoded]:
    """All members of a plan at once, by table id."""
    shared = SharedBatch(batch, TickNumbers(plan.tick, plan.ends, plan.place), Readers(plan))
    return {member.table_id: shared.decode(member) for member in plan.members}


class SharedBatch:
    """One batch, from which members are decoded. A column is made when the first member needs it."""

    def __init__(self, batch: pa.RecordBatch, ticks: TickNumbers, readers: Readers) -> None:
        self._place = ticks.place
        self._batch = _with_times_held(as_records(batch, self._place))
        self._said = Said.of(batch.schema)
        self._readers, self._ticks = readers, ticks
        rows = self._batch.column(ROW) if ROW in self._batch.schema.names else None
        self._records = Batch(self._batch, rows)
        self._readings: dict[str, Reading] = {}
        self._key_readings: dict[str, Reading] = {}
        self._shared: dict[Hashable, SharedColumn] = {}
        self._changed: dict[tuple[str, str], ChangedRows] = {}
        self._parts: dict[Hashable, SharedBatch] = {}
        self._numbers = ticks.of(self._batch)
        self._tick = SharedColumn(pa.array(self._numbers))
        self._due: dict[int, npt.NDArray[np.bool_]] = {}
        self._chosen: Few[Chosen] = Few()
        self._error_rows: Few[Rows] = Few()

    def decode(self, member: MemberPlan) -> Decoded:
        """The good rows, and the bad ones that are due. Raises only if Arrow cannot hold them, or the format fails."""
        if member.reference and member.reference != self._said.reference:
            return Decoded(None, None)
        return self._of_partitions(member.partitions)._beside(member.visible)._decode(member)

    def _of_partitions(self, partitions: tuple[Lane, ...]) -> SharedBatch:
        """The records of some partitions."""
        if not partitions:
            return self
        lanes = self._batch.column(self._place.lane or "")
        return self._part(partitions, lambda: np.isin(lanes.to_numpy(zero_copy_only=False), partitions))

    def _beside(self, visible: tuple[int, str] | None) -> SharedBatch:
        """The rows that a snapshot did not hold already."""
        if visible is None:
            return self
        places, xids = self._batch.column(self._place.counted), self._batch.column(ROW).field("xid")
        return self._part(visible, lambda: ~Seen.of(visible).holds(places, xids))

    def _part(self, which: Hashable, choose: Callable[[], npt.NDArray[np.bool_]]) -> SharedBatch:
        """Some of the records; members of the same ones share what is made from them."""
        if which not in self._parts:
            chosen = choose()
            batch = self._batch if chosen.all() else self._batch.filter(pa.array(chosen))
            self._parts[which] = self if batch is self._batch else SharedBatch(batch, self._ticks, self._readers)
        return self._parts[which]

    def _decode(self, member: MemberPlan) -> Decoded:
        if not self._batch.num_rows:
            return Decoded(None, None)
        self._said.check(member)
        if member.change_envelope:
            return self._decode_changes(member)
        values = self._value_columns(member)
        others = [*self._key_columns(member), *(self._included(member, what) for what, _ in member.include)]
        if member.keys:
            return self._decode_events(member, values, others)
        columns = [*values, *others]
        errors = self._member_errors(member, columns)
        good = self._due_after(member.data_after)
        if not errors:
            return Decoded(self._data_rows(member, columns, good), None)
        bad = np.zeros(self._batch.num_rows, np.bool_)
        bad[list(errors)] = True
        found = self._bad_rows(errors, bad & self._due_after(member.errors_after), member.hash_version)
        return Decoded(self._data_rows(member, columns, good & ~bad), found)

    def _decode_events(
        self, member: MemberPlan, values: Sequence[SharedColumn], others: Sequence[SharedColumn]
    ) -> Decoded:
        """The events of keys take the place of rows."""
        whole = self._reading(member).record_errors(member.asked) if member.columns else {}
        raw = None if self._records.rows is not None else self._records.values
        events = events_of(member, values, others, whole, raw, () if raw is None else self._without_key)
        return self._decoded(member, events)

    def _decode_changes(self, member: MemberPlan) -> Decoded:
        """The same, where the row is inside of the value."""
        included = [self._included(member, what) for what, _ in member.include]
        return self._decoded(member, self._changed_rows(member).events(member, included, self._batch))

    def _decoded(self, member: MemberPlan, events: Events) -> Decoded:
        bad = np.zeros(self._batch.num_rows, np.bool_)
        bad[list(events.errors)] = True
        found = self._bad_rows(events.errors, bad & self._due_after(member.errors_after), member.hash_version)
        good = ~bad & self._due_after(member.data_after)
        good[list(events.passed)] = False
        return Decoded(self._event_rows(member, events, good), found)

    def _event_rows(self, member: MemberPlan, events: Events, good: npt.NDArray[np.bool_]) -> Rows | None:
        """They have no hash: only rows do."""
        system, records = [self._tick, *(self._input(name) for name in self._place.given)], events.records
        if records is not None:
            good, system = good[records], [SharedColumn(column.values.take(pa.array(records))) for column in system]
        chosen = Chosen(good)
        if chosen.is_empty:
            return None
        stored = (*events.columns, *system, *events.marks)
        values = [chosen.values(column) for column in stored]
        batch = pa.RecordBatch.from_arrays(values, schema=member.events_schema)
        return Rows(batch, 0, chosen.bounds(batch), lambda number, how: chosen.chunk(stored[number], how))

    def _due_after(self, tick: int) -> npt.NDArray[np.bool_]:
        """Rows that are still due: of ticks after the last tick that the collection holds completely."""
        if tick not in self._due:
            self._due[tick] = self._numbers > tick
        return self._due[tick]

    def _data_rows(self, member: MemberPlan, columns: list[SharedColumn], good: npt.NDArray[np.bool_]) -> Rows | None:
        chosen = self._chosen.get(good.tobytes(), lambda: Chosen(good))
        if chosen.is_empty:
            return None
        place = [self._input(name) for name in self._place.given]
        schema = data_schema(member)
        stored = (*columns, self._tick, *place)
        batch = pa.RecordBatch.from_arrays([chosen.values(column) for column in stored], schema=schema)
        names = [*schema.names[: len(columns)], *self._place.names]
        hashed = dict(zip(names, (*columns, *place), strict=True))
        hash = chosen.hash(hashed, row_hash(member.hash_version))
        return Rows(batch, hash, chosen.bounds(batch), lambda number, how: chosen.chunk(stored[number], how))

    def _member_errors(self, member: MemberPlan, columns: Iterable[SharedColumn]) -> Errors:
        """The record's own error first, then the first bad column's."""
        errors: Errors = dict(self._reading(member).record_errors(member.asked)) if member.columns else {}
        for column in columns:
            for row, text in column.errors.items():
                errors.setdefault(row, text)
        return errors

    def _bad_rows(self, errors: Errors, bad: npt.NDArray[np.bool_], hash_version: int) -> Rows | None:
        rows = np.flatnonzero(bad)
        if not len(rows):
            return None
        texts = tuple(errors[row] for row in rows.tolist())
        key = (hash_version, rows.tobytes(), texts)
        return self._error_rows.get(key, lambda: self._make_error_rows(rows, texts, hash_version))

    def _make_error_rows(self, rows: npt.NDArray[np.intp], texts: Sequence[str], hash_version: int) -> Rows:
        picked = self._batch.take(pa.array(rows))
        value = as_values(picked.column(ROW)) if ROW in picked.schema.names else picked.column("value")
        own = [picked.column("timestamp"), picked.column("key"), value, pa.array(texts, pa.string())]
        system = [pa.array(self._numbers[rows]), *(picked.column(name) for name in self._place.given)]
        batch = pa.RecordBatch.from_arrays(own + system, schema=errors_schema(self._place))
        columns = [SharedColumn(values) for values in batch.columns]
        all_rows = Chosen(np.ones(len(rows), np.bool_))
        hash = hash_table(batch, hash_version)
        return Rows(batch, hash, bounds_of(batch), lambda number, how: all_rows.chunk(columns[number], how))

    def _changed_rows(self, member: MemberPlan) -> ChangedRows:
        """Taken apart once for all members of this format and envelope."""
        of = member.format, member.envelope
        if of not in self._changed:
            self._changed[of] = ChangedRows(self._records, self._readers, member)
        return self._changed[of]

    # ── columns, each made once ──────────────────────────────────────────────────────────────────────────────────────

    def _once(self, *key: Hashable, make: Callable[[], SharedColumn]) -> SharedColumn:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def _reading(self, member: MemberPlan) -> Reading:
        """Read by the member's format, once for all members of this format."""
        if member.format not in self._readings:
            self._readings[member.format] = self._readers.of(member)(self._records)
        return self._readings[member.format]

    def _value_columns(self, member: MemberPlan) -> list[SharedColumn]:
        reading = self._reading(member)
        if not member.columns:
            return [self._once(member.format, make=lambda: SharedColumn(*reading.plain()))]
        return [
            self._field(member.format, reading, field, type_name, name in member.text_columns)
            for field, (name, type_name) in zip(member.fields, member.columns, strict=True)
        ]

    def _field(self, of: str, reading: Reading, field: Field, type_name: str, as_text: bool) -> SharedColumn:
        def make() -> SharedColumn:
            return SharedColumn(*reading.field(field, type_name, as_text=as_text))

        return self._once(of, field, type_name, as_text, make=make)

    def _included(self, member: MemberPlan, what: str) -> SharedColumn:
        if what == "timestamp":
            return self._once("timestamp", make=self._make_timestamp)
        if what == "key" and (reading := self._reading_of_key(member)):
            return self._once("key", member.key_format, make=lambda: self._of_key(reading.plain()))
        if what != "key" or member.decoder.key_type == "bytea":
            return self._input(what)
        return self._once("key", make=self._make_key)

    def _key_columns(self, member: MemberPlan) -> list[SharedColumn]:
        """The columns that the key is decoded into. What is wrong with a key as a whole is wrong with the first."""
        reading, decoder = self._reading_of_key(member), member.key_decoder
        if reading is None or decoder is None or not member.key_columns:
            return []
        whole = reading.record_errors(member.asked_of_key)
        fields = zip(decoder.fields(member.key_columns), member.key_columns, strict=True)
        return [
            self._key_field(member.key_format, reading, field, kind, {} if number else whole)
            for number, (field, (_, kind)) in enumerate(fields)
        ]

    def _key_field(self, of: str, reading: Reading, field: Field, type_name: str, whole: Errors) -> SharedColumn:
        def make() -> SharedColumn:
            column = reading.field(field, type_name, as_text=False)
            return self._of_key(Column(column.values, {**column.errors, **whole}))

        return self._once("key", of, field, type_name, bool(whole), make=make)

    def _of_key(self, column: Column) -> SharedColumn:
        """A record without a key has NULL there, which is no error of the record."""
        errors = {row: f"key: {text}" for row, text in column.errors.items() if row not in self._without_key}
        return SharedColumn(column.values, errors)

    @cached_property
    def _without_key(self) -> frozenset[int]:
        keys = self._records.keys
        return frozenset(np.flatnonzero(keys.is_null()).tolist() if keys.null_count else ())

    def _reading_of_key(self, member: MemberPlan) -> Reading | None:
        """Read by the format of the member's key, once for all members of this format; None if it has none."""
        if member.key_decoder is None:
            return None
        if member.key_format not in self._key_readings:
            keys = pa.RecordBatch.from_arrays([self._records.values, self._records.keys], names=["key", "value"])
            self._key_readings[member.key_format] = self._readers.of_key(member, member.key_decoder)(Batch(keys))
        return self._key_readings[member.key_format]

    def _input(self, name: str) -> SharedColumn:
        return self._once("input", name, make=lambda: SharedColumn(self._batch.column(name)))

    def _make_key(self) -> SharedColumn:
        texts = utf8(self._records.keys)
        return SharedColumn(texts.values, {row: f"key: {text}" for row, text in texts.errors.items()})

    def _make_timestamp(self) -> SharedColumn:
        values = self._batch.column("timestamp")
        missing = np.flatnonzero(values.is_null()) if values.null_count else ()
        return SharedColumn(values, {int(row): record_times.NOT_HELD for row in missing})


def _with_times_held(batch: pa.RecordBatch) -> pa.RecordBatch:
    given = batch.column("timestamp")
    held = record_times.hold(given)
    return batch if held is given else batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", held)
