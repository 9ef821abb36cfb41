"""One batch of records to the good and the bad rows of every member; reads and writes no file.

Whatever the number of tables, a record is parsed once and each distinct (field, type) is converted and hashed once.
A bad field is an error of the tables that use it and of no other. A table's error of a record is the first in the
order of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors import record_times
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.storage.fanout.columns import Errors, convert
from airflow_provider_mzshare.storage.fanout.hashing import (
    Digest,
    Lanes,
    column_lanes,
    digest,
    hash_rows,
    hash_table,
    row_lanes,
)
from airflow_provider_mzshare.storage.fanout.jsontext import JsonParser, canonical_json
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, arrow_type, data_schema, errors_schema


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
    _lanes: dict[str, Lanes] = field(default_factory=dict)

    @cached_property
    def digest(self) -> Digest:
        return digest(self.values)

    def lanes(self, name: str) -> Lanes:
        if name not in self._lanes:
            self._lanes[name] = column_lanes(name, self.digest)
        return self._lanes[name]


def parser_for(plan: FanoutPlan) -> JsonParser:
    """Keeping every digit costs time, so it is done only where some column needs it; the rows are the same."""
    types = {type_name for member in plan.members if member.is_typed_json for _, type_name in member.columns}
    as_text = any(member.text_columns for member in plan.members)
    return JsonParser(exact=as_text or any(name == "jsonb" or name.startswith("numeric") for name in types))


def decode_batch(batch: pa.RecordBatch, plan: FanoutPlan) -> dict[str, Decoded]:
    """All members of a plan at once, by table id."""
    shared = SharedBatch(batch, TickNumbers(plan.tick, plan.ends), parser_for(plan))
    return {member.table_id: shared.decode(member) for member in plan.members}


class SharedBatch:
    """One batch, from which members are decoded; every column is made when the first one asks for it."""

    def __init__(self, batch: pa.RecordBatch, ticks: TickNumbers, parser: JsonParser) -> None:
        # Spark gives timestamps the session's zone, and large types if it is told to.
        self._batch = _with_times_held(batch.select(INPUT_SCHEMA.names).cast(INPUT_SCHEMA))
        self._parser, self._ticks = parser, ticks
        self._shared: dict[tuple[str, ...], _Column] = {}
        self._parts: dict[tuple[int, ...], SharedBatch] = {}
        self._numbers = ticks.of(self._batch)
        self._tick = pa.array(self._numbers)

    def decode(self, member: MemberPlan) -> Decoded:
        """The good rows and the bad ones that are due. Raises only if Arrow cannot hold them."""
        if member.partitions:
            return self._only(member.partitions)._decode(member)
        return self._decode(member)

    def _only(self, partitions: tuple[int, ...]) -> SharedBatch:
        """The records of some partitions; members of the same ones share what is made of them."""
        if partitions not in self._parts:
            chosen = np.isin(self._batch.column("partition").to_numpy(zero_copy_only=False), partitions)
            batch = self._batch if chosen.all() else self._batch.filter(pa.array(chosen))
            self._parts[partitions] = self if batch is self._batch else SharedBatch(batch, self._ticks, self._parser)
        return self._parts[partitions]

    def _decode(self, member: MemberPlan) -> Decoded:
        if not self._batch.num_rows:
            return Decoded(None, None)
        columns = [*self._value_columns(member), *(self._included(member, what) for what, _ in member.include)]
        errors = self._member_errors(member, columns)
        system = [_Column(self._tick), self._input("partition"), self._input("offset")]
        schema = data_schema(member)
        data = pa.RecordBatch.from_arrays([c.values for c in columns + system], schema=schema)
        hashed = [*columns, *system[1:]]
        names = [*schema.names[: len(columns)], *schema.names[-2:]]
        lanes = row_lanes((c.lanes(name) for c, name in zip(hashed, names, strict=True)), data.num_rows)
        good = self._due(member.data_after)
        if not errors:
            return Decoded(_pick(data, lanes, good), None)
        bad = np.zeros(data.num_rows, np.bool_)
        bad[list(errors)] = True
        return Decoded(_pick(data, lanes, good & ~bad), self._error_rows(errors, bad & self._due(member.errors_after)))

    def _due(self, after: int) -> npt.NDArray[np.bool_]:
        """Rows of ticks that come after the one up to which a collection is complete."""
        return self._numbers > after

    def _member_errors(self, member: MemberPlan, columns: Iterable[_Column]) -> Errors:
        """The record's own error first, then the first bad column's."""
        errors: Errors = dict(self._objects.errors) if member.is_typed_json else {}
        for column in columns:
            for row, text in column.errors.items():
                errors.setdefault(row, text)
        return errors

    def _error_rows(self, errors: Errors, bad: npt.NDArray[np.bool_]) -> Rows | None:
        rows = np.flatnonzero(bad)
        if not len(rows):
            return None
        picked = self._batch.take(pa.array(rows))
        texts = pa.array([errors[row] for row in rows.tolist()], pa.string())
        own = [picked.column("timestamp"), picked.column("key"), picked.column("value"), texts]
        system = [pa.array(self._numbers[rows]), picked.column("partition"), picked.column("offset")]
        batch = pa.RecordBatch.from_arrays(own + system, schema=errors_schema())
        return Rows(batch, hash_table(batch))

    # ── columns, each made once ──────────────────────────────────────────────────────────────────────────────────────

    def _once(self, *key: str, make: Callable[[], _Column]) -> _Column:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def _value_columns(self, member: MemberPlan) -> list[_Column]:
        if member.is_typed_json:
            return [self._field(name, type_name, name in member.text_columns) for name, type_name in member.columns]
        if member.format == "json":
            return [self._once("json", make=lambda: _Column(self._texts("value").values, self._documents.errors))]
        return [self._once("text", make=self._make_text) if member.format == "text" else self._input("value")]

    def _included(self, member: MemberPlan, what: str) -> _Column:
        if what == "timestamp":
            return self._once("timestamp", make=self._make_timestamp)
        if what != "key" or member.format == "bytes":
            return self._input(what)
        return self._once("key", make=self._make_key)

    def _input(self, name: str) -> _Column:
        return self._once("input", name, make=lambda: _Column(self._batch.column(name)))

    def _texts(self, name: str) -> _Column:
        return self._once("utf-8", name, make=lambda: _Column(*_decode_utf8(self._batch.column(name))))

    def _field(self, name: str, type_name: str, as_text: bool) -> _Column:
        kind = "as text" if as_text else "field"
        return self._once(kind, name, type_name, make=lambda: self._make_field(name, type_name, as_text))

    def _make_field(self, name: str, type_name: str, as_text: bool) -> _Column:
        objects = self._objects.values
        try:
            values = list(map(itemgetter(name), objects))
        except KeyError:
            values = [each.get(name) for each in objects]
        if as_text:
            values = [v if v is None or type(v) is str else canonical_json(v) for v in values]
        column, errors = convert(values, type_name, arrow_type(type_name))
        return _Column(column, {row: f'field "{name}": {text}' for row, text in errors.items()})

    def _make_text(self) -> _Column:
        texts = self._texts("value")
        raw = self._batch.column("value")
        nothing = np.flatnonzero(np.asarray(pc.fill_null(pc.binary_length(raw), 0)) == 0)
        missing = {row: "value is empty" if raw[row].is_valid else "value is NULL" for row in nothing.tolist()}
        return _Column(texts.values, {**texts.errors, **missing})

    def _make_key(self) -> _Column:
        texts = self._texts("key")
        return _Column(texts.values, {row: f"key: {text}" for row, text in texts.errors.items()})

    def _make_timestamp(self) -> _Column:
        values = self._batch.column("timestamp")
        missing = np.flatnonzero(values.is_null()) if values.null_count else ()
        return _Column(values, {int(row): record_times.NOT_HELD for row in missing})

    @cached_property
    def _documents(self) -> _Documents:
        """The value of every record, of whatever JSON kind."""
        texts = self._texts("value")
        values, errors = self._parser.parse_all(texts.values.to_pylist())
        return _Documents(values, {**errors, **texts.errors})

    @cached_property
    def _objects(self) -> _Documents:
        """For tables with columns: every value an object, an empty one in place of what is none."""
        values, errors = self._documents
        if set(map(type, values)) <= {dict}:
            return self._documents
        wrong = {row: "the JSON value is not an object" for row, each in enumerate(values) if type(each) is not dict}
        return _Documents([each if type(each) is dict else {} for each in values], {**wrong, **errors})


def _pick(data: pa.RecordBatch, lanes: Lanes, chosen: npt.NDArray[np.bool_]) -> Rows | None:
    if not chosen.any():
        return None
    if chosen.all():
        return Rows(data, hash_rows(lanes))
    return Rows(data.filter(pa.array(chosen)), hash_rows(Lanes(lanes.lo[chosen], lanes.hi[chosen])))


class _Documents(NamedTuple):
    values: list[Any]
    errors: Errors


def _with_times_held(batch: pa.RecordBatch) -> pa.RecordBatch:
    given = batch.column("timestamp")
    held = record_times.hold(given)
    return batch if held is given else batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", held)


def _decode_utf8(column: pa.Array) -> tuple[pa.Array, Errors]:
    """Binary to text; NULL stays NULL, and so becomes what is not UTF-8."""
    try:
        return column.cast(pa.string()), {}
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    errors: Errors = {}
    for row, raw in enumerate(column.to_pylist()):
        try:
            texts.append(None if raw is None else raw.decode())
        except UnicodeDecodeError as bad:
            texts.append(None)
            errors[row] = f"invalid UTF-8 at byte {bad.start}"
    return pa.array(texts, pa.string()), errors
