"""Thrift's compact protocol, as far as the footer of a Parquet file needs it: structs to values and back, to the byte.

Knows neither Parquet nor what a field means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)
_NIBBLE = 15


class Typed(NamedTuple):
    """A field of a struct. A list's value is an ``Items``, a struct's a ``Struct``."""

    type: int
    value: Any


class Items(NamedTuple):
    type: int
    values: list[Any]


Struct = dict[int, Typed]
"""By the number of the field, in the order they are written in."""


class Encoded(bytes):
    """A value in the form that it is written in."""


class UnknownThrift(ValueError):
    def __init__(self, kind: int) -> None:
        super().__init__(f"a footer with a Thrift value of type {kind}, which no Parquet file had so far")


def number(value: int) -> Typed:
    return Typed(_I64, value)


def structs(values: list[Struct]) -> Typed:
    return Typed(_LIST, Items(_STRUCT, values))


def texts(*values: str) -> Typed:
    return Typed(_LIST, Items(_BINARY, [value.encode() for value in values]))


def small_number(value: int) -> Typed:
    return Typed(_I16, value)


def struct(fields: Struct) -> Typed:
    return Typed(_STRUCT, fields)


def frozen(fields: Struct) -> Struct:
    """The same struct with its lists and structs encoded already, for a struct of which only the top level changes."""
    return {field: _frozen(each) if each.type in (_LIST, _STRUCT) else each for field, each in fields.items()}


def _frozen(each: Typed) -> Typed:
    out = bytearray()
    _write_value(out, each.type, each.value)
    return Typed(each.type, Encoded(out))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_struct(data: bytes) -> Struct:
    return _Reader(data).struct()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> Struct:
        fields: Struct = {}
        field = 0
        while header := self._byte():
            kind, step = header & _NIBBLE, header >> 4
            field = field + step if step else self._integer()
            fields[field] = Typed(kind, self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BYTE:
            return self._take(1)
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _LIST:
            return self._items()
        if kind == _STRUCT:
            return self.struct()
        raise UnknownThrift(kind)

    def _items(self) -> Items:
        header = self._byte()
        kind, count = header & _NIBBLE, header >> 4
        if count == _NIBBLE:
            count = self._varint()
        read: Callable[[], Any] = self._byte if kind in (_TRUE, _FALSE) else lambda: self._value(kind)
        return Items(kind, [read() for _ in range(count)])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 0x7F:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_struct(fields: Struct) -> bytes:
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for field, (kind, value) in fields.items():
        step = field - last
        if 0 < step <= _NIBBLE:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_integer(out, field)
        last = field
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if type(value) is Encoded:
        out += value
    elif kind in _INTEGERS:
        _write_integer(out, value)
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == _LIST:
        _write_items(out, value)
    elif kind == _STRUCT:
        _write_struct(out, value)
    else:
        out += value


def _write_items(out: bytearray, items: Items) -> None:
    kind, values = items
    if len(values) < _NIBBLE:
        out.append(len(values) << 4 | kind)
    else:
        out.append(_NIBBLE << 4 | kind)
        _write_varint(out, len(values))
    if kind in (_TRUE, _FALSE):
        out += bytes(values)
        return
    for value in values:
        _write_value(out, kind, value)


def _write_integer(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else ~(value << 1))


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
