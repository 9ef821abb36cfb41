"""What a table with ENVELOPE UPSERT must hold, in plain Python: one record at a time, with a dict of its rows.

It decodes by ``json`` and knows nothing of the program's decoders and folds, so that both can be compared with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.storage.fanout.hashing import hash_table

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SYSTEM = (("_mz_tick", "bigint"), ("_mz_partition", "integer"), ("_mz_offset", "bigint"))
DELETES = "_mz_deletes"
FIRST_MS, LAST_MS = -2_208_988_800_000, 253_402_300_799_999
LIMITS = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}

Key = tuple[Any, ...]
Columns = tuple[tuple[str, str], ...]


class Record(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    """Milliseconds since 1970."""


class Tick(NamedTuple):
    """A tick of a source: of each partition, ``[lower, upper)``."""

    number: int
    ranges: Mapping[int, tuple[int, int]]

    def holds(self, record: Record) -> bool:
        lower, upper = self.ranges.get(record.partition, (0, 0))
        return lower <= record.offset < upper


class Bad(Exception):
    """A key or a value that cannot be decoded, or a time that cannot be kept; its text says why."""


# ── what a table is ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Shape:
    """How a table's records decode, as its statement says.

    :param columns: of the value, which is JSON then; empty: the value as a whole, in the column ``data``.
    :param key_format: None: FORMAT stands alone.
    :param key_columns: of the key, which is JSON then; empty: the key as a whole, in the column of ``include``.
    :param include: pairs of what and name, in the order of the columns.
    :param inline: the column of INLINE.
    """

    format: str = "json"
    columns: Columns = (("n", "bigint"), ("name", "text"))
    key_format: str | None = None
    key_columns: Columns = ()
    include: tuple[tuple[str, str], ...] = (("key", "key"),)
    inline: str | None = None
    envelope: str = "upsert"

    @property
    def spec(self) -> TableSpec:
        return TableSpec(
            reference="topic",
            format=self.format,
            columns=tuple(ColumnSpec(name=name, type=kind) for name, kind in self.columns),
            key_format=self.key_format,
            key_columns=tuple(ColumnSpec(name=name, type=kind) for name, kind in self.key_columns),
            include=tuple(Include(what=what, name=name) for what, name in self.include),  # type: ignore[arg-type]
            inline_errors=self.inline,
            envelope=self.envelope,
        )

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.key_columns) or tuple(n for what, n in self.include if what == "key")

    @property
    def value_columns(self) -> Columns:
        return self.columns or (("data", "bytea" if self.format == "bytes" else "text"),)

    @property
    def visible(self) -> Columns:
        kinds = {"partition": "integer", "offset": "bigint", "timestamp": "timestamptz"}
        kinds["key"] = "bytea" if (self.key_format or self.format) == "bytes" else "text"
        included = tuple((name, kinds[what]) for what, name in self.include)
        inline = ((self.inline, "text"),) if self.inline else ()
        return self.value_columns + self.key_columns + included + inline

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.visible + SYSTEM)


# ── what a record is ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """``values`` are those of the visible columns."""

    values: tuple[Any, ...]
    tick: int
    partition: int
    offset: int

    @property
    def all(self) -> tuple[Any, ...]:
        return (*self.values, self.tick, self.partition, self.offset)


@dataclass(frozen=True)
class ErrorRow:
    record: Record
    tick: int
    text: str


@dataclass(frozen=True)
class Event:
    """:param row: of a deletion, its visible columns outside of the key mean nothing."""

    key: Key
    deletes: bool
    row: Row


def event_of(shape: Shape, record: Record, tick: int) -> Event | ErrorRow:
    """What one record says, whatever others say. Its first error counts: the key's, the value's, then the others'."""
    try:
        key = _key(shape, record.key)
    except Bad as bad:
        return ErrorRow(record, tick, f"key: {bad}")
    named: dict[str, Any] = dict(zip(shape.key, key, strict=True))
    if record.value is not None:
        try:
            named |= _value(shape, record.value)
        except Bad as bad:
            if shape.inline is None:
                return ErrorRow(record, tick, str(bad))
            named[shape.inline] = str(bad)
        try:
            named |= _others(shape, record)
        except Bad as bad:
            return ErrorRow(record, tick, str(bad))
    values = tuple(named.get(name) for name, _ in shape.visible)
    return Event(key, record.value is None, Row(values, tick, record.partition, record.offset))


def _key(shape: Shape, raw: bytes | None) -> Key:
    if raw is None:
        raise Bad("NULL")
    if not shape.key_columns:
        return (_whole(shape.key_format or ("bytes" if shape.format == "bytes" else "bare"), raw),)
    fields = _fields(raw, shape.key_columns)
    for name, value in fields.items():
        if value is None:
            raise Bad(f"{name} is NULL")
    return tuple(fields.values())


def _value(shape: Shape, raw: bytes) -> dict[str, Any]:
    return _fields(raw, shape.columns) if shape.columns else {"data": _whole(shape.format, raw)}


def _others(shape: Shape, record: Record) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for what, name in shape.include:
        if what == "timestamp":
            if not FIRST_MS <= record.timestamp <= LAST_MS:
                raise Bad("timestamp: outside the years 1900 to 9999")
            found[name] = EPOCH + timedelta(milliseconds=record.timestamp)
        elif what != "key":
            found[name] = getattr(record, what)
    return found


def _whole(format: str, raw: bytes) -> str | bytes:
    if format == "bytes":
        return raw
    if format != "bare" and not raw:
        raise Bad("value is empty")
    text = _text(raw)
    if format == "json":
        _json(text)
    return text


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as bad:
        raise Bad(f"invalid UTF-8 at byte {bad.start}") from None


def _json(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise Bad("NaN and Infinity are not JSON")

    if not text:
        raise Bad("value is empty")
    if not text.strip(" \t\n\r"):
        raise Bad("value is blank")
    if text.startswith("\ufeff"):
        raise Bad("byte order mark before the JSON value")
    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as bad:
        raise Bad("text after the JSON value" if bad.msg == "Extra data" else "not valid JSON") from None


def _fields(raw: bytes, columns: Columns) -> dict[str, Any]:
    found = _json(_text(raw))
    if type(found) is not dict:
        raise Bad("the JSON value is not an object")
    return {name: _field(name, found.get(name), kind) for name, kind in columns}


def _field(name: str, value: Any, kind: str) -> Any:
    if value is None:
        return None
    named = {bool: "boolean", str: "string", list: "array", dict: "object"}
    got, where = named.get(type(value), "number"), f'field "{name}": '
    if kind in LIMITS and got == "number":
        if type(value) is float:
            raise Bad(f"{where}expected {kind}, got number with a fraction or an exponent")
        if not -LIMITS[kind] <= value < LIMITS[kind]:
            raise Bad(f"{where}out of range for {kind}")
        return value
    if (kind, got) == ("double", "number"):
        return float(value)
    if (kind, got) in {("text", "string"), ("boolean", "boolean")}:
        return value
    raise Bad(f"{where}expected {kind}, got {got}")


# ── what the table holds ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class State:
    """A table as of a tick."""

    rows: Mapping[Key, Row] = field(default_factory=dict)
    errors: tuple[ErrorRow, ...] = ()


Apply = Callable[[Row | None, Event], Row | None]
"""The row of a key after an event."""


def upsert(before: Row | None, event: Event) -> Row | None:
    return None if event.deletes else event.row


def adding(shape: Shape) -> Apply:
    """The first column of the value counts up, whatever the rest says. An envelope that no tick may pass twice."""

    def apply(before: Row | None, event: Event) -> Row | None:
        if event.deletes:
            return None
        first, *rest = event.row.values
        return replace(event.row, values=((before.values[0] if before else 0) + (first or 0), *rest))

    return apply


@dataclass(frozen=True)
class Case:
    """A stream of records, and the ticks that cut it. Ticks do not overlap; records outside of all are not read yet."""

    shape: Shape
    ticks: tuple[Tick, ...]
    records: tuple[Record, ...]

    def of(self, tick: Tick) -> list[Record]:
        return sorted(record for record in self.records if tick.holds(record))

    def events(self, ticks: Iterable[Tick]) -> list[Event | ErrorRow]:
        """In the order in which they count: by tick, then by place."""
        return [event_of(self.shape, record, tick.number) for tick in ticks for record in self.of(tick)]

    def states(self, apply: Apply = upsert) -> dict[int, State]:
        """As of every tick, by its number."""
        rows: dict[Key, Row] = {}
        errors: list[ErrorRow] = []
        found = {}
        for tick in self.ticks:
            for each in self.events([tick]):
                if isinstance(each, ErrorRow):
                    errors.append(each)
                    continue
                after = apply(rows.pop(each.key, None), each)
                if after is not None:
                    rows[each.key] = after
            found[tick.number] = State(dict(rows), tuple(errors))
        return found

    def batch(self, ticks: Iterable[Tick] | None = None) -> pa.RecordBatch:
        """The records of some ticks, as a connector gives them."""
        chosen = [record for tick in (self.ticks if ticks is None else ticks) for record in self.of(tick)]
        held = [r.timestamp * 1000 if FIRST_MS <= r.timestamp <= LAST_MS else None for r in chosen]
        columns = [[r.key for r in chosen], [r.value for r in chosen], [r.partition for r in chosen]]
        arrays = [*columns, [r.offset for r in chosen], held]
        typed = [pa.array(values, kind.type) for values, kind in zip(arrays, INPUT_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(typed, schema=INPUT_SCHEMA)

    def event_table(self, ticks: Iterable[Tick]) -> pa.Table:
        """The events of some ticks as an envelope gets them."""
        good = [event for event in self.events(ticks) if isinstance(event, Event)]
        table = row_table(self.shape, [event.row for event in good])
        return table.append_column(DELETES, pa.array([event.deletes for event in good], pa.bool_()))


def row_table(shape: Shape, rows: Sequence[Row]) -> pa.Table:
    """As they are stored."""
    columns = list(zip(*(row.all for row in rows), strict=True)) or [()] * len(shape.schema)
    arrays = [pa.array(list(values), each.type) for values, each in zip(columns, shape.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=shape.schema)


def state_hash(shape: Shape, state: State) -> int:
    """Of the key and the visible columns; how rows are hashed is not the oracle's business."""
    return hash_table(row_table(shape, list(state.rows.values())).select([name for name, _ in shape.visible]))


# ── compared with what is there ───────────────────────────────────────────────────────────────────────────────────────


def check_rows(shape: Shape, state: State, found: pa.Table) -> None:
    """Compare with all columns of a data collection, in any order of rows. Fails with the first key that differs."""
    assert found.schema.names == shape.schema.names
    wanted = {key: row.all for key, row in state.rows.items()}
    there: dict[Key, list[tuple[Any, ...]]] = {}
    at = [shape.schema.names.index(name) for name in shape.key]
    for row in zip(*(column.to_pylist() for column in found.columns), strict=True):
        there.setdefault(tuple(row[number] for number in at), []).append(row)
    for key in sorted(wanted.keys() | there.keys(), key=repr):
        rows = there.get(key, [])
        assert rows == ([wanted[key]] if key in wanted else []), f"key {key}"


def check_errors(state: State, found: pa.Table, *, texts: bool = True) -> None:
    """Compare with all columns of an errors collection, in any order of rows.

    :param texts: also what they say.
    """
    names = ["_mz_partition", "_mz_offset", "_mz_tick", "key", "value", *(["error"] if texts else [])]
    there = list(zip(*(found.column(name).to_pylist() for name in names), strict=True))
    wanted = [
        (r.partition, r.offset, each.tick, r.key, r.value, *([each.text] if texts else []))
        for each in state.errors
        for r in [each.record]
    ]
    assert sorted(there, key=lambda row: row[:2]) == sorted(wanted, key=lambda row: row[:2])
