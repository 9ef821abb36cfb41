"""JSON records to columns by msgspec, if it is installed: only the fields that tables ask for are read.

It may refuse what the strict reading takes, never the other way round: what it refuses is read strictly, record by
record, so that rows and errors are those of the strict reading alone. Executors of a cluster have no msgspec; there
the strict reading does all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.schema import MAX_PRECISION, numeric_parts
from airflow_provider_mzshare.formats.base import Batch, Column, Errors, Field, ReadBatch, Reading, TableColumns
from airflow_provider_mzshare.formats.columns import convert, convert_in_parts
from airflow_provider_mzshare.formats.jsontext import (
    SURELY_FLAT,
    JsonParser,
    canonical_json,
    field_error,
    is_too_deep,
)

try:
    import msgspec
except ImportError:  # executors need not have it
    _VERSION = "0.0"
else:
    _VERSION = msgspec.__version__

_LEAST = (0, 22)
"""The first version that was compared with the strict reading, record by record."""

_UNTAKEN = frozenset('"\\') | frozenset(map(chr, range(0x20)))
"""Characters that msgspec does not take in the name of a field."""

Decode = Callable[[Any], Any]


def is_installed() -> bool:
    return tuple(int(part) for part in _VERSION.split(".")[:2]) >= _LEAST


def fast_reader(tables: Sequence[TableColumns], strict: ReadBatch) -> ReadBatch | None:
    """How records are read for these tables; None if only the strict reading can read them."""
    fields = {name for table in tables for name, _ in table.columns}
    if not is_installed() or any(_UNTAKEN & set(name) for name in fields):
        return None
    return partial(FastReading, _Shape(tables), strict)


def _is_told_by_its_text(type_name: str) -> bool:
    """Types that need every digit, which a parsed value may have lost."""
    return type_name == "jsonb" or numeric_parts(type_name) is not None


class _Shape:
    """The fields that the tables have. If a column needs every digit of a field, the field is kept as it was sent."""

    def __init__(self, tables: Sequence[TableColumns]) -> None:
        columns = [column for table in tables for column in table.columns]
        as_text = {name for table in tables for name in table.text_columns}
        self.as_sent = as_text | {name for name, type_name in columns if _is_told_by_its_text(type_name)}
        self._attributes = {name: f"f{number}" for number, name in enumerate(dict(columns))}
        nothing = msgspec.Raw(b"null")
        fields = [
            (attribute, msgspec.Raw, nothing) if name in self.as_sent else (attribute, Any, None)
            for name, attribute in self._attributes.items()
        ]
        names = {attribute: name for name, attribute in self._attributes.items()}
        record = msgspec.defstruct("Record", fields, rename=names, gc=False)
        self.blank = record()
        # Tables without columns only ask whether a record is JSON.
        self.decode: Decode = msgspec.json.Decoder(record if fields else msgspec.Raw).decode

    def values(self, found: Sequence[Any], field: Field) -> list[Any]:
        return list(map(attrgetter(self._attributes[str(field)]), found))


class _Found(NamedTuple):
    records: list[Any]
    """By row; an empty record in place of a refused one."""
    refused: list[int]


class FastReading(Reading):
    def __init__(self, shape: _Shape, strict: ReadBatch, records: Batch) -> None:
        self._shape, self._strict, self._records = shape, strict, records

    def record_errors(self, table: TableColumns) -> Errors:
        return self._by_row(self._refused.record_errors(table)) if self._found.refused else {}

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        values = self._shape.values(self._found.records, field)
        if field in self._shape.as_sent:
            column = _convert_as_sent(values, type_name, as_text=as_text)
        else:
            column = convert(values, type_name)
        column = Column(column.values, {row: field_error(field, text) for row, text in column.errors.items()})
        if not self._found.refused:
            return column
        return self._put_in(column, self._refused.field(field, type_name, as_text=as_text))

    def plain(self) -> Column:
        errors = self._by_row(self._refused.plain().errors) if self._found.refused else {}
        return Column(self._records.texts.values, errors)

    @cached_property
    def _found(self) -> _Found:
        raw: list[bytes | None] = self._records.values.to_pylist()
        for row in self._records.texts.errors:
            raw[row] = None
        if (pc.max(pc.binary_length(self._records.values)).as_py() or 0) > SURELY_FLAT:
            raw = [None if each and is_too_deep(each) else each for each in raw]
        return _decode_all(self._shape, raw)

    @cached_property
    def _refused(self) -> Reading:
        """The strict reading of the records that were refused."""
        return self._strict(self._records.take(self._found.refused))

    def _by_row(self, errors: Errors) -> Errors:
        return {self._found.refused[number]: text for number, text in errors.items()}

    def _put_in(self, column: Column, refused: Column) -> Column:
        rows = np.arange(len(column.values))
        rows[self._found.refused] = len(rows) + np.arange(len(refused.values))
        values = pa.concat_arrays([column.values, refused.values]).take(pa.array(rows))
        return Column(values, {**column.errors, **self._by_row(refused.errors)})


def _decode_all(shape: _Shape, raw: Sequence[bytes | None]) -> _Found:
    """Decode as many records as possible with one call. After a refused record, the call is repeated for the rest."""
    records: list[Any] = []
    refused: list[int] = []
    rest = iter(raw)
    while len(records) < len(raw):
        try:
            records.extend(map(shape.decode, rest))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            refused.append(len(records))
            records.append(shape.blank)
    return _Found(records, refused)


# ── values as they were sent ──────────────────────────────────────────────────────────────────────────────────────────


def _convert_as_sent(values: Sequence[Any], type_name: str, *, as_text: bool) -> Column:
    if as_text:
        texts = [v if v is None or type(v) is str else canonical_json(v) for v in _parse_each(values)]
        return convert(texts, type_name)
    if type_name == "jsonb":
        return convert_in_parts(values, _documents, partial(_parsed, type_name))
    parts = numeric_parts(type_name)
    if parts:
        return convert_in_parts(values, partial(_numbers, *parts), partial(_parsed, type_name))
    # Another table needs the digits of this field; this table does not.
    try:
        return convert(list(map(msgspec.json.Decoder().decode, values)), type_name)
    except msgspec.MsgspecError:
        return _parsed(type_name, values)


def _parsed(type_name: str, values: Sequence[Any]) -> Column:
    return convert(_parse_each(values), type_name)


def _parse_each(values: Sequence[Any]) -> list[Any]:
    """Values as the strict reading has them, for any type. msgspec has checked that all of them are JSON."""
    parse = JsonParser(exact=True).parse_one
    return [parse(str(each, "utf-8")) for each in values]


def _numbers(precision: int, scale: int, values: Sequence[Any]) -> pa.Array:
    """Arrow wraps numbers that do not fit: so it only gets numbers that surely fit into its 128 bits."""
    texts = list(map(bytes, values))
    kind = pa.decimal128(precision, scale)
    joined = b"".join(texts)
    if max(map(len, texts), default=0) + scale <= MAX_PRECISION and b"e" not in joined and b"E" not in joined:
        return _nulls(pa.array(texts, pa.string())).cast(kind)
    return pa.array([None if text == b"null" else Decimal(text.decode()) for text in texts], kind)


def _documents(values: Sequence[Any]) -> pa.Array:
    """Read and written again by msgspec, numbers with a fraction as they were sent: what ``canonical_json`` gives."""
    decode, encode = _rewriter()
    try:
        texts = [encode(decode(each)) for each in values]
    except msgspec.MsgspecError as refused:
        raise ValueError from refused
    return _nulls(pa.array(texts, pa.string()))


@cache
def _rewriter() -> tuple[Decode, Callable[[Any], bytes]]:
    return msgspec.json.Decoder(float_hook=msgspec.Raw).decode, msgspec.json.Encoder().encode


def _nulls(texts: pa.Array) -> pa.Array:
    """The JSON value null, or no field at all: NULL."""
    absent = pc.equal(texts, "null")
    return pc.if_else(absent, pa.scalar(None, pa.string()), texts) if pc.any(absent).as_py() else texts
