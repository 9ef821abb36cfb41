"""One batch of records to the good and the bad rows of every member; reads and writes no file.

Whatever the number of tables, a record is parsed once and each distinct (field, type) is converted and hashed once.
Tables that take the same rows share the columns cut from the batch. Those with the same columns also share the hash.
A bad field is an error only for tables that use it. If a record has several errors, a table gets the first in the
order of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors import record_times
from airflow_provider_mzshare.connectors.places import Lane
from airflow_provider_mzshare.connectors.records import ROW, as_records
from airflow_provider_mzshare.formats.base import Batch, Errors, Field, ReadBatch, Reading, utf8
from airflow_provider_mzshare.storage.fanout.hashing import hash_table, row_hash
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.rows import Chosen, Few, Rows, SharedColumn, bounds_of


@dataclass(frozen=True)
class Decoded:
    """What one batch gives to one member; None if there are no rows."""

    data: Rows | None
    errors: Rows | None


class Readers:
    """How each format of a plan reads records; made when the first member of the format asks for it.

    So if a format cannot be loaded, only its own members fail.
    """

    def __init__(self, plan: FanoutPlan) -> None:
        self._plan = plan
        self._made: dict[str, ReadBatch] = {}

    def of(self, member: MemberPlan) -> ReadBatch:
        if member.format not in self._made:
            asked = [each.asked for each in self._plan.members if each.format == member.format]
            self._made[member.format] = member.decoder.reader(asked)
        return self._made[member.format]


def decode_batch(batch: pa.RecordBatch, plan: FanoutPlan) -> dict[str, Decoded]:
    """All members of a plan at once, by table id."""
    shared = SharedBatch(batch, TickNumbers(plan.tick, plan.ends, plan.place), Readers(plan))
    return {member.table_id: shared.decode(member) for member in plan.members}


class SharedBatch:
    """One batch, from which members are decoded. A column is made when the first member needs it."""

    def __init__(self, batch: pa.RecordBatch, ticks: TickNumbers, readers: Readers) -> None:
        self._place = ticks.place
        self._batch = _with_times_held(as_records(batch, self._place))
        self._readers, self._ticks = readers, ticks
        rows = self._batch.column(ROW) if ROW in self._batch.schema.names else None
        self._records = Batch(self._batch, rows)
        self._readings: dict[str, Reading] = {}
        self._shared: dict[Hashable, SharedColumn] = {}
        self._parts: dict[tuple[Lane, ...], SharedBatch] = {}
        self._numbers = ticks.of(self._batch)
        self._tick = SharedColumn(pa.array(self._numbers))
        self._due: dict[int, npt.NDArray[np.bool_]] = {}
        self._chosen: Few[Chosen] = Few()
        self._error_rows: Few[Rows] = Few()

    def decode(self, member: MemberPlan) -> Decoded:
        """The good rows, and the bad ones that are due. Raises only if Arrow cannot hold them, or the format fails."""
        if member.partitions:
            return self._only(member.partitions)._decode(member)
        return self._decode(member)

    def _only(self, partitions: tuple[Lane, ...]) -> SharedBatch:
        """The records of some partitions; members of the same partitions share what is made from them."""
        if partitions not in self._parts:
            lanes = self._batch.column(self._place.lane or "").to_numpy(zero_copy_only=False)
            chosen = np.isin(lanes, partitions)
            batch = self._batch if chosen.all() else self._batch.filter(pa.array(chosen))
            self._parts[partitions] = self if batch is self._batch else SharedBatch(batch, self._ticks, self._readers)
        return self._parts[partitions]

    def _decode(self, member: MemberPlan) -> Decoded:
        if not self._batch.num_rows:
            return Decoded(None, None)
        columns = [*self._value_columns(member), *(self._included(member, what) for what, _ in member.include)]
        errors = self._member_errors(member, columns)
        good = self._due_after(member.data_after)
        if not errors:
            return Decoded(self._data_rows(member, columns, good), None)
        bad = np.zeros(self._batch.num_rows, np.bool_)
        bad[list(errors)] = True
        found = self._bad_rows(errors, bad & self._due_after(member.errors_after), member.hash_version)
        return Decoded(self._data_rows(member, columns, good & ~bad), found)

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
        own = [*(picked.column(name) for name in ("timestamp", "key", "value")), pa.array(texts, pa.string())]
        system = [pa.array(self._numbers[rows]), *(picked.column(name) for name in self._place.given)]
        batch = pa.RecordBatch.from_arrays(own + system, schema=errors_schema(self._place))
        columns = [SharedColumn(values) for values in batch.columns]
        all_rows = Chosen(np.ones(len(rows), np.bool_))
        hash = hash_table(batch, hash_version)
        return Rows(batch, hash, bounds_of(batch), lambda number, how: all_rows.chunk(columns[number], how))

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
        if what != "key" or member.decoder.key_type == "bytea":
            return self._input(what)
        return self._once("key", make=self._make_key)

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
