"""Changes of rows in JSON, as Debezium writes them: taken apart into the row before, the row after, and the key.

Each record is taken alone, with its schema around it or without. What the parts mean for a table is the envelope's.
As in ``fastjson``, msgspec reads what it can, and what it refuses is read strictly: the parts are the same JSON values.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_provider_mzshare.formats.base import Batch, Changes, Errors, Field
from airflow_provider_mzshare.formats.jsontext import (
    SURELY_FLAT,
    BadValue,
    JsonParser,
    canonical_json,
    field_error,
    is_too_deep,
)

try:
    import msgspec
except ImportError:  # executors need not have it
    msgspec = None  # type: ignore[assignment]

_WRAPPED = frozenset({"schema", "payload"})
_HALF = re.compile("[\ud800-\udfff]")
_NOT_AN_OBJECT = "the JSON value is not an object"

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium sends for a value that it was not given, because it has not changed."""
_AS_BYTES = base64.b64encode(UNAVAILABLE.encode()).decode()
_AS_NUMBERS = list(UNAVAILABLE.encode())
_AS_UUID = str(uuid.UUID(bytes=hashlib.md5(UNAVAILABLE.encode(), usedforsecurity=False).digest(), version=3))
_TEXTS = frozenset({UNAVAILABLE, _AS_BYTES, _AS_UUID, json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":"))})
_MARKS = tuple(
    text.encode()
    for text in (
        UNAVAILABLE,
        _AS_BYTES.rstrip("="),
        _AS_UUID,
        *(f"95{comma}95{comma}100{comma}" for comma in (",", ", ")),
    )
)
"""One of them is in every record that has such a value, in whatever form."""


class _Parts(NamedTuple):
    """``op`` is None where there is none, or no text."""

    op: str | None = None
    before: bytes | None = None
    after: bytes | None = None


_EMPTY = _Parts()
_OBJECT_OR_NULL = (b"{", b"n")
_OPS = {f'"{op}"'.encode(): op for op in ("c", "u", "d", "r")}


def take_apart(records: Batch) -> Changes:
    """The parts of every record. A value that is NULL, or says nothing but null, is empty."""
    count = len(records.values)
    ops: list[str | None] = [None] * count
    before: list[bytes | None] = [None] * count
    after: list[bytes | None] = [None] * count
    empty = [False] * count
    errors: Errors = dict(records.texts.errors)
    for row, raw in enumerate(records.values.to_pylist()):
        if raw is None:
            empty[row] = True
        elif row not in errors:
            try:
                parts = _parts(raw)
            except BadValue as bad:
                errors[row] = str(bad)
                continue
            empty[row] = parts is None
            ops[row], before[row], after[row] = parts or _EMPTY
    keys = [None if raw is None else _without_schema(raw) for raw in records.keys.to_pylist()]
    own, old, new = (pa.array(each, pa.binary()) for each in (keys, before, after))
    return Changes(ops, own, old, new, empty, errors, _unavailable(after))


def _parts(raw: bytes) -> _Parts | None:
    """None for a value that is null. Raises BadValue."""
    if msgspec is not None and not (len(raw) > SURELY_FLAT and is_too_deep(raw)):
        try:
            return _parts_by_text(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
    return _parts_strictly(raw)


def _parts_by_text(raw: bytes) -> _Parts | None:
    """Every part as it was sent. Raises what msgspec raises; then the record is read strictly."""
    record, fields, text, nothing = _decoders()
    found = record(raw)
    if found is not None and found.payload is not nothing:
        both = fields(raw)
        if both.keys() == _WRAPPED and bytes(found.payload)[:1] in (b"{", b"n"):
            found = record(found.payload)
    if found is None:
        return None
    op, before, after = bytes(found.op), bytes(found.before), bytes(found.after)
    if before[:1] not in _OBJECT_OR_NULL or after[:1] not in _OBJECT_OR_NULL:
        raise ValueError
    return _Parts(
        _OPS.get(op) or (text(op) if op[:1] == b'"' else None),
        before if before[:1] == b"{" else None,
        after if after[:1] == b"{" else None,
    )


@cache
def _decoders() -> tuple[Any, Any, Any, Any]:
    nothing = msgspec.Raw(b"null")
    parts = [(name, msgspec.Raw, nothing) for name in ("op", "before", "after", "payload")]
    record = msgspec.defstruct("Record", parts, gc=False)
    decoders = (record | None, dict[str, msgspec.Raw], str)
    one, all_fields, text = (msgspec.json.Decoder(each).decode for each in decoders)
    return one, all_fields, text, nothing


def _parts_strictly(raw: bytes) -> _Parts | None:
    value = _unwrapped(JsonParser(exact=True).parse_one(raw.decode()))
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadValue(_NOT_AN_OBJECT)
    op = value.get("op")
    return _Parts(op if type(op) is str else None, *(_row(value, name) for name in ("before", "after")))


def _row(value: Mapping[str, Any], name: str) -> bytes | None:
    row = value.get(name)
    if row is None:
        return None
    if not isinstance(row, dict):
        raise BadValue(field_error(name, _NOT_AN_OBJECT))
    return _written(row)


def _written(value: Any) -> bytes:
    """Half of a surrogate pair stays escaped: whoever reads the field says that it is no character."""
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", canonical_json(value)).encode()


def _unwrapped(value: Any) -> Any:
    """A key may have columns of these names; then the payload is no object."""
    if isinstance(value, dict) and value.keys() == _WRAPPED and isinstance(value["payload"], (dict, type(None))):
        return value["payload"]
    return value


def _without_schema(raw: bytes) -> bytes:
    """A key. What is no JSON stays as it is: whoever reads it says so."""
    if b'"payload"' not in raw:
        return raw
    try:
        value = JsonParser(exact=True).parse_one(raw.decode())
        inner = _unwrapped(value)
        return raw if inner is value else _written(inner)
    except ValueError:
        return raw


# ── values that were not sent ─────────────────────────────────────────────────────────────────────────────────────────


def _unavailable(rows: Sequence[bytes | None]) -> dict[int, frozenset[Field]]:
    """By row, the fields whose value was not sent. Rows that cannot be read have none: their reader says why."""
    found: dict[int, frozenset[Field]] = {}
    together = b"".join(raw for raw in rows if raw is not None)
    if not any(mark in together for mark in _MARKS):
        return found
    for number, raw in enumerate(rows):
        if raw is not None and any(mark in raw for mark in _MARKS):
            try:
                row = JsonParser(exact=False).parse_one(raw.decode())
            except ValueError:
                continue
            if fields := frozenset(name for name, value in row.items() if is_unavailable(value)):
                found[number] = fields
    return found


def is_unavailable(value: Any) -> bool:
    """The placeholder in the form that the column's type has upstream: text, bytes, uuid, map, or a list of one."""
    if isinstance(value, str):
        return value in _TEXTS
    if isinstance(value, dict):
        return value == {UNAVAILABLE: UNAVAILABLE}
    if isinstance(value, list):
        return value == _AS_NUMBERS or (len(value) == 1 and isinstance(value[0], str) and value[0] in _TEXTS)
    return False
