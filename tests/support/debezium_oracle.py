"""What a table with ENVELOPE DEBEZIUM must hold, in plain Python: one record at a time, with a dict of its rows.

As ``keyed_oracle`` it knows nothing of the program's decoders and folds; shapes, rows, ticks and comparisons are its.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, NamedTuple

from airflow_provider_mzshare.core.specs import TableSpec
from tests.support import keyed_oracle
from tests.support.keyed_oracle import Bad, Case, Columns, ErrorRow, Key, Record, Row, Shape, State

PLACEHOLDER = "__debezium_unavailable_value"
CODED = base64.b64encode(PLACEHOLDER.encode()).decode()
"""As bytes are in JSON."""
SETS, OTHERS = ("c", "r", "u"), ("d", "t")


# ── what a record is ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sets:
    """The key's row is this one. :param kept: columns whose values are those of the row before."""

    key: Key
    row: Row
    kept: tuple[str, ...] = ()
    before: Key | None = None
    """The key that this row had until now, if the record says so."""


@dataclass(frozen=True)
class Removes:
    key: Key


@dataclass(frozen=True)
class RemovesAll:
    """An ``op t``: every row of the table is gone."""


@dataclass(frozen=True)
class Nothing:
    """A record that changes nothing and is no error."""


Change = Sets | Removes | RemovesAll | Nothing


@dataclass(frozen=True)
class DebeziumShape(Shape):
    """A statement with ENVELOPE DEBEZIUM.

    :param primary_key: the columns of the rows that make the key; without them it is the record's key.
    """

    envelope: str = "debezium"
    include: tuple[tuple[str, str], ...] = ()
    primary_key: tuple[str, ...] = ()

    @property
    def spec(self) -> TableSpec:
        return super().spec.model_copy(update={"primary_key": self.primary_key})

    @property
    def key(self) -> tuple[str, ...]:
        return self.primary_key or super().key

    @property
    def typed_key(self) -> Columns:
        return tuple((name, dict(self.visible)[name]) for name in self.key)


def change_of(shape: DebeziumShape, record: Record, tick: int) -> Change | ErrorRow:
    """What one record says, whatever others say."""
    try:
        return _change(shape, record, tick)
    except Bad as bad:
        return ErrorRow(record, tick, str(bad))


def _change(shape: DebeziumShape, record: Record, tick: int) -> Change:
    told = None if record.value is None else _payload(keyed_oracle._json(keyed_oracle._text(record.value)))
    if told is None:
        # After a deletion; on a compacted topic it can be all that is left of it.
        if not shape.primary_key:
            return Removes(_record_key(shape, record.key))
        own = _own_key(shape, record.key)
        return Nothing() if own is None else Removes(own)
    op = told.get("op")
    for name in ("before", "after"):
        if told.get(name) is not None and type(told[name]) is not dict:
            raise Bad(f"{name} is no row")
    if op == "t":
        return RemovesAll()
    if op == "d":
        return Removes(_key_gone(shape, record, told.get("before")))
    if op not in SETS:
        raise Bad(f"op {op!r}")
    after = told.get("after")
    if after is None:
        raise Bad("no row after")
    key = _key_of(shape, record, after)
    return _sets(shape, record, tick, key, after, told.get("before"))


def _sets(shape: DebeziumShape, record: Record, tick: int, key: Key, after: dict[str, Any], before: Any) -> Sets:
    kept = tuple(name for name, _ in shape.columns if unavailable(after.get(name)))
    named: dict[str, Any] = {
        name: typed(name, after.get(name), kind) for name, kind in shape.columns if name not in kept
    }
    named |= zip(shape.key, key, strict=True)
    named |= keyed_oracle._others(shape, record)
    values = tuple(named.get(name) for name, _ in shape.visible)
    old = _fields(before, shape.typed_key) if shape.primary_key and before is not None else None
    return Sets(key, Row(values, tick, record.partition, record.offset), kept, old)


def unavailable(value: Any) -> bool:
    """Whether Debezium says of a value that it has not got it: text, bytes, or an array of one or the other."""
    if type(value) is list and value:
        return value in ([PLACEHOLDER], [CODED], list(PLACEHOLDER.encode()))
    return value in (PLACEHOLDER, CODED)


def _payload(value: Any) -> dict[str, Any] | None:
    if type(value) is dict and value.keys() == {"schema", "payload"} and type(value["payload"]) in (dict, type(None)):
        value = value["payload"]
    if value is not None and type(value) is not dict:
        raise Bad("no object")
    return value


def _key_of(shape: DebeziumShape, record: Record, fields: Any) -> Key:
    if not shape.primary_key:
        return _record_key(shape, record.key)
    if fields is None:
        raise Bad("no row with the key")
    return _fields(fields, shape.typed_key)


def _key_gone(shape: DebeziumShape, record: Record, before: Any) -> Key:
    """A deletion that does not say the row may say it by its own key."""
    try:
        return _key_of(shape, record, before)
    except Bad:
        own = _own_key(shape, record.key) if shape.primary_key else None
        if own is None:
            raise
        return own


def _own_key(shape: DebeziumShape, raw: bytes | None) -> Key | None:
    """The columns that the statement names, if the record's key has them all."""
    try:
        return (
            None
            if raw is None
            else _fields(_payload(keyed_oracle._json(keyed_oracle._text(raw))) or {}, shape.typed_key)
        )
    except Bad:
        return None


def _record_key(shape: DebeziumShape, raw: bytes | None) -> Key:
    if raw is None:
        raise Bad("key: NULL")
    return _fields(_payload(keyed_oracle._json(keyed_oracle._text(raw))) or {}, shape.key_columns)


def _fields(found: Mapping[str, Any], columns: Columns) -> Key:
    key = tuple(typed(name, found.get(name), kind) for name, kind in columns)
    if None in key or any(unavailable(found.get(name)) for name, _ in columns):
        raise Bad("key: not whole")
    return key


def typed(name: str, value: Any, kind: str) -> Any:
    """A field of JSON as it is stored."""
    if value is None:
        return None
    if kind.startswith("numeric"):
        if type(value) not in (int, float):
            raise Bad(f"{name} is no number")
        exact = Decimal(str(value))
        if exact != (kept := exact.quantize(Decimal("0.01"))):
            raise Bad(f"{name} has too many digits")
        return kept
    if kind == "jsonb":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if kind == "timestamptz":
        if type(value) is not str:
            raise Bad(f"{name} is no text")
        try:
            return _moment(value)
        except ValueError:
            raise Bad(f"{name} is no time") from None
    return keyed_oracle._field(name, value, kind)


def _moment(value: str) -> datetime:
    body, _, fraction = value.removesuffix("Z").partition(".")
    if not value.endswith("Z"):
        raise ValueError
    found = datetime.strptime(f"{body}.{fraction or '0'}", "%Y-%m-%dT%H:%M:%S.%f")
    return found.replace(tzinfo=timezone.utc)


# ── what the table holds ──────────────────────────────────────────────────────────────────────────────────────────────


class Stalled(NamedTuple):
    """The table goes no further than the tick before."""

    tick: int


@dataclass(frozen=True)
class DebeziumCase(Case):
    shape: DebeziumShape

    def states(self, apply: object = None) -> dict[int, State]:
        """As of every tick at which the table is not stalled."""
        return {number: state for number, state in self._all().items() if isinstance(state, State)}

    @property
    def stalled(self) -> int | None:
        """The tick at which a topic of several partitions says that all rows are gone."""
        return next((number for number, state in self._all().items() if isinstance(state, Stalled)), None)

    def _all(self) -> dict[int, State | Stalled]:
        rows: dict[Key, Row] = {}
        errors: list[ErrorRow] = []
        found: dict[int, State | Stalled] = {}
        for tick in self.ticks:
            changes = [(record, change_of(self.shape, record, tick.number)) for record in self.of(tick)]
            if len(tick.ranges) > 1 and any(isinstance(change, RemovesAll) for _, change in changes):
                found[tick.number] = Stalled(tick.number)
                return found
            for record, change in changes:
                failed = change if isinstance(change, ErrorRow) else apply_change(self.shape, rows, change, record)
                if failed:
                    errors.append(failed)
            found[tick.number] = State(dict(rows), tuple(errors))
        return found


def apply_change(shape: DebeziumShape, rows: dict[Key, Row], change: Change, record: Record) -> ErrorRow | None:
    """Into ``rows``. A row that keeps values which are not there is an error, and changes nothing."""
    if isinstance(change, Sets):
        there = rows.get(change.key if change.before is None else change.before)
        if change.kept and there is None:
            return ErrorRow(record, change.row.tick, f"unavailable: {', '.join(change.kept)}")
        if change.before is not None:
            rows.pop(change.before, None)
        rows[change.key] = _filled(shape, change, there)
    elif isinstance(change, Removes):
        rows.pop(change.key, None)
    elif isinstance(change, RemovesAll):
        rows.clear()
    return None


def _filled(shape: DebeziumShape, change: Sets, there: Row | None) -> Row:
    if there is None:
        return change.row
    names = [name for name, _ in shape.visible]
    pairs = zip(names, change.row.values, there.values, strict=True)
    return replace(change.row, values=tuple(old if name in change.kept else new for name, new, old in pairs))


# ── compared with the upstream ────────────────────────────────────────────────────────────────────────────────────────


def contents(state: State) -> dict[Key, tuple[Any, ...]]:
    return {key: row.values for key, row in state.rows.items()}


def upstream_contents(shape: DebeziumShape, rows: Iterable[Sequence[str | None]]) -> dict[Key, tuple[Any, ...]]:
    """Of texts, as the upstream gives them, in the order of the visible columns."""
    read = [tuple(_read(text, kind) for text, (_, kind) in zip(row, shape.visible, strict=True)) for row in rows]
    at = [[name for name, _ in shape.visible].index(name) for name in shape.key]
    found = {tuple(row[number] for number in at): row for row in read}
    assert len(found) == len(read), "the upstream has a key twice"
    return found


def _read(text: str | None, kind: str) -> Any:
    if text is None or kind == "text":
        return text
    if kind.startswith("numeric"):
        return Decimal(text)
    if kind == "timestamptz":
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)
    return typed("", json.loads(text), kind)
