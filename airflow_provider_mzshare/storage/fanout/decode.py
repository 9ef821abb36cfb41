"""One batch of records to the good and the bad rows of every member; reads and writes no file.

Whatever the number of tables, a record is parsed once and each distinct (field, type) is converted and hashed once.
A bad field is an error of the tables that use it and of no other. A table's error of a record is the first in the
order of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors import record_times
from airflow_provider_mzshare.connectors.places import Lane
from airflow_provider_mzshare.connectors.records import ROW, as_records
from airflow_provider_mzshare.formats.base import Batch, Errors, Field, ReadBatch, Reading, utf8
from airflow_provider_mzshare.storage.fanout.hashing import Digest, Lanes, RowHash, hash_rows, hash_table, row_hash
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, data_schema, errors_schema


@dataclass(frozen=True)
class Rows:
    """Rows of one collection, and their hash."""

    batch: pa.RecordBatch
    hash: int


@dataclass(frozen=True)
class Decoded:
    """What one batch gives to one member; None where there is no row."""

    data: Rows | None
    errors: Rows | None


@dataclass
class _Column:
    """A column of the batch that any number of tables share, with what is wrong in it by row."""

    values: pa.Array
    errors: Errors = field(default_factory=dict)
    _digests: dict[int, Digest] = field(default_factory=dict)
    _lanes: dict[tuple[int, str], Lanes] = field(default_factory=dict)

    def lanes(self, name: str, how: RowHash) -> Lanes:
        if how.version not in self._digests:
            self._digests[how.version] = how.digest(self.values)
        if (how.version, name) not in self._lanes:
            self._lanes[how.version, name] = how.column_lanes(name, self._digests[how.version])
        return self._lanes[how.version, name]


class Readers:
    """How each format of a plan reads records; made when the first member of the format asks for it.

    A format that cannot be loaded is so a failure of its own members alone.
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
    """One batch, from which members are decoded; every column is made when the first one asks for it."""

    def __init__(self, batch: pa.RecordBatch, ticks: TickNumbers, readers: Readers) -> None:
        self._place = ticks.place
        self._batch = _with_times_held(as_records(batch, self._place))
        self._readers, self._ticks = readers, ticks
        rows = self._batch.column(ROW) if ROW in self._batch.schema.names else None
        self._records = Batch(self._batch, rows)
        self._readings: dict[str, Reading] = {}
        self._shared: dict[Hashable, _Column] = {}
        self._parts: dict[tuple[Lane, ...], SharedBatch] = {}
        self._numbers = ticks.of(self._batch)
        self._tick = pa.array(self._numbers)

    def decode(self, member: MemberPlan) -> Decoded:
        """The good rows and the bad ones that are due. Raises only if Arrow cannot hold them, or the format fails."""
        if member.partitions:
            return self._only(member.partitions)._decode(member)
        return self._decode(member)

    def _only(self, partitions: tuple[Lane, ...]) -> SharedBatch:
        """The records of some partitions; members of the same ones share what is made of them."""
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
        system = [_Column(self._tick), *(self._input(name) for name in self._place.given)]
        schema = data_schema(member)
        data = pa.RecordBatch.from_arrays([c.values for c in columns + system], schema=schema)
        hashed = [*columns, *system[1:]]
        names = [*schema.names[: len(columns)], *self._place.names]
        how = row_hash(member.hash_version)
        lanes = how.row_lanes((c.lanes(name, how) for c, name in zip(hashed, names, strict=True)), data.num_rows)
        good = self._due(member.data_after)
        if not errors:
            return Decoded(_pick(data, lanes, good), None)
        bad = np.zeros(data.num_rows, np.bool_)
        bad[list(errors)] = True
        found = self._error_rows(errors, bad & self._due(member.errors_after), member.hash_version)
        return Decoded(_pick(data, lanes, good & ~bad), found)

    def _due(self, after: int) -> npt.NDArray[np.bool_]:
        """Rows of ticks that come after the one up to which a collection is complete."""
        return self._numbers > after

    def _member_errors(self, member: MemberPlan, columns: Iterable[_Column]) -> Errors:
        """The record's own error first, then the first bad column's."""
        errors: Errors = dict(self._reading(member).record_errors(member.asked)) if member.columns else {}
        for column in columns:
            for row, text in column.errors.items():
                errors.setdefault(row, text)
        return errors

    def _error_rows(self, errors: Errors, bad: npt.NDArray[np.bool_], hash_version: int) -> Rows | None:
        rows = np.flatnonzero(bad)
        if not len(rows):
            return None
        picked = self._batch.take(pa.array(rows))
        texts = pa.array([errors[row] for row in rows.tolist()], pa.string())
        own = [picked.column("timestamp"), picked.column("key"), picked.column("value"), texts]
        system = [pa.array(self._numbers[rows]), *(picked.column(name) for name in self._place.given)]
        batch = pa.RecordBatch.from_arrays(own + system, schema=errors_schema(self._place))
        return Rows(batch, hash_table(batch, hash_version))

    # ── columns, each made once ──────────────────────────────────────────────────────────────────────────────────────

    def _once(self, *key: Hashable, make: Callable[[], _Column]) -> _Column:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def _reading(self, member: MemberPlan) -> Reading:
        """By the member's format, once for all that have it."""
        if member.format not in self._readings:
            self._readings[member.format] = self._readers.of(member)(self._records)
        return self._readings[member.format]

    def _value_columns(self, member: MemberPlan) -> list[_Column]:
        reading = self._reading(member)
        if not member.columns:
            return [self._once(member.format, make=lambda: _Column(*reading.plain()))]
        return [
            self._field(member.format, reading, field, type_name, name in member.text_columns)
            for field, (name, type_name) in zip(member.fields, member.columns, strict=True)
        ]

    def _field(self, of: str, reading: Reading, field: Field, type_name: str, as_text: bool) -> _Column:
        def make() -> _Column:
            return _Column(*reading.field(field, type_name, as_text=as_text))

        return self._once(of, field, type_name, as_text, make=make)

    def _included(self, member: MemberPlan, what: str) -> _Column:
        if what == "timestamp":
            return self._once("timestamp", make=self._make_timestamp)
        if what != "key" or member.decoder.key_type == "bytea":
            return self._input(what)
        return self._once("key", make=self._make_key)

    def _input(self, name: str) -> _Column:
        return self._once("input", name, make=lambda: _Column(self._batch.column(name)))

    def _make_key(self) -> _Column:
        texts = utf8(self._records.keys)
        return _Column(texts.values, {row: f"key: {text}" for row, text in texts.errors.items()})

    def _make_timestamp(self) -> _Column:
        values = self._batch.column("timestamp")
        missing = np.flatnonzero(values.is_null()) if values.null_count else ()
        return _Column(values, {int(row): record_times.NOT_HELD for row in missing})


def _pick(data: pa.RecordBatch, lanes: Lanes, chosen: npt.NDArray[np.bool_]) -> Rows | None:
    if not chosen.any():
        return None
    if chosen.all():
        return Rows(data, hash_rows(lanes))
    return Rows(data.filter(pa.array(chosen)), hash_rows(Lanes(lanes.lo[chosen], lanes.hi[chosen])))


def _with_times_held(batch: pa.RecordBatch) -> pa.RecordBatch:
    given = batch.column("timestamp")
    held = record_times.hold(given)
    return batch if held is given else batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", held)
