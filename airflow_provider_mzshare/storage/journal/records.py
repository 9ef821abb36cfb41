"""What people push, as messages: values, dictionaries, or Arrow. A record that is wrong is named by its number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.storage.journal.cutting import Row, sizes
from airflow_provider_mzshare.storage.journal.rows import FEW, Messages, Rows, as_arrow

FIELDS = ("key", "value", "headers", "timestamp")
RECORD_BYTES = 16 << 20
"""A record may have as many, as a reader has whole records in memory."""
CHUNK_ROWS, CHUNK_BYTES = 2_000, 1 << 20
"""Records that come one by one become messages as soon as there are so many, or so large ones."""
_CAST_BYTES = 1 << 30
"""Arrow's shorter offsets end at twice as many."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: what Spark and Python have."""


class BadRecord(TerminalError):
    """A record that cannot be pushed. ``number`` counts from 1. :param unit: what is counted."""

    def __init__(self, number: int, problem: str, *, unit: str = "record") -> None:
        self.number, self.problem = number, problem
        super().__init__(f"{unit} {number}: {problem}")


class BadRecords(TerminalError):
    """Something that is no records at all, or an Arrow table of the wrong shape."""

    hint = (
        "give bytes or texts, dictionaries with key, value, headers and timestamp, or an Arrow table of these columns"
    )


def messages_of(records: Any) -> Iterator[pa.RecordBatch]:
    """Any number of records, some at a time. A timestamp that is not given is NULL."""
    return map(as_arrow, pieces_of(records))


def pieces_of(records: Any) -> Iterator[Messages]:
    """The same; where they are few they stay plain."""
    if isinstance(records, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        yield from _of_arrow(records)
        return
    if isinstance(records, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(records, Iterable):
        raise BadRecords(f"{_type(records)} is one thing, not an iterable of records")
    chunk = MessageChunk()
    for record in records:
        chunk.add(record)
        if chunk.is_full:
            yield chunk.taken()
    if len(chunk) > FEW:
        yield chunk.taken()
    elif len(chunk):
        yield chunk.taken_plain()


class MessageChunk:
    """Records that become a batch of messages. :param unit: what their numbers count, for errors."""

    def __init__(self, unit: str = "record") -> None:
        self._unit, self._number = unit, 0
        self._rows: list[Row] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= CHUNK_ROWS or self._size >= CHUNK_BYTES

    def add(self, record: Any, *, number: int | None = None) -> None:
        """:param number: None: one more than the record's before."""
        self._number = self._number + 1 if number is None else number
        try:
            if isinstance(record, Mapping):
                key, value, stamp, headers = _taken_apart(record)
            else:
                key, value, stamp, headers = None, _bytes(record, "it"), None, None
            size = len(key or b"") + len(value or b"")
            if headers:
                size += sum(len(one["name"].encode()) + len(one["value"] or b"") for one in headers)
            if size > RECORD_BYTES:
                raise ValueError(f"it has {size} bytes, and a record may have {RECORD_BYTES}")
        except ValueError as error:
            raise BadRecord(self._number, str(error), unit=self._unit) from None
        self._rows.append((key, value, stamp, headers))
        self._size += size

    def taken(self) -> pa.RecordBatch:
        return as_arrow(self.taken_plain())

    def taken_plain(self) -> Rows:
        found = Rows(self._rows, self._size)
        self._rows, self._size = [], 0
        return found


# ── one record ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _taken_apart(record: Mapping[str, Any]) -> Row:
    """Raises ValueError, whose text says what is wrong."""
    if unknown := [name for name in record if name not in FIELDS]:
        raise ValueError(f"it has {unknown[0]!r}, and a record has {', '.join(FIELDS)}")
    if "value" not in record:
        raise ValueError("it has no value; None is a deletion")
    key, value = record.get("key"), record["value"]
    return (
        None if key is None else _bytes(key, "its key"),
        None if value is None else _bytes(value, "its value"),
        _microseconds(record.get("timestamp")),
        _headers(record.get("headers")),
    )


def _bytes(value: Any, what: str) -> bytes:
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what} is a text that is no UTF-8: {value[:40]!r}") from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    also = ", or a dictionary" if what == "it" else ""
    raise ValueError(f"{what} is {_type(value)}, not bytes or a text{also}")


def _microseconds(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(f"{value[:-1]}+00:00" if value.endswith(("Z", "z")) else value)
        except ValueError:
            raise ValueError(f"its timestamp {value[:40]!r} is no time like 2026-01-31T12:00:00Z") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"its timestamp {value.isoformat()} has no time zone")
        found = (value - _EPOCH) // _MICROSECOND
        if not _FIRST_MS * 1000 <= found < (_LAST_MS + 1) * 1000:
            raise ValueError(f"its timestamp {value.isoformat()} is no time of the years 1 to 9999 in UTC")
        return found
    if isinstance(value, int) and not isinstance(value, bool):
        if not _FIRST_MS <= value <= _LAST_MS:
            raise ValueError(f"its timestamp {value} is no time in milliseconds of the years 1 to 9999")
        return value * 1000
    raise ValueError(f"its timestamp is {_type(value)}, not a datetime, milliseconds or a text")


def _headers(value: Any) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    pairs: Iterable[Any] = value.items() if isinstance(value, Mapping) else value
    if isinstance(value, (str, bytes)) or not isinstance(pairs, Iterable):
        raise ValueError(f"its headers are {_type(value)}, not a dictionary or pairs")
    return [_header(pair) for pair in pairs]


def _header(pair: Any) -> dict[str, Any]:
    if not isinstance(pair, Sequence) or isinstance(pair, (str, bytes)) or len(pair) != 2:
        raise ValueError("one of its headers is no pair of a name and a value")
    name, value = pair
    if not isinstance(name, str):
        raise ValueError(f"the name of a header is {_type(name)}, not a text")
    _bytes(name, "the name of a header")
    return {"name": name, "value": None if value is None else _bytes(value, f"the header {name!r}")}


def _type(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


# ── Arrow ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_arrow(records: pa.Table | pa.RecordBatch | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    names = records.schema.names
    if unknown := [name for name in names if name not in FIELDS]:
        raise BadRecords(f"the table has a column {unknown[0]!r}, and records have {', '.join(FIELDS)}")
    if "value" not in names or len(set(names)) != len(names):
        raise BadRecords("the table has no column 'value'" if "value" not in names else "a column is there twice")
    first = 1
    for batch in [records] if isinstance(records, pa.RecordBatch) else _batches(records):
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            piece = batch.slice(start, CHUNK_ROWS)
            yield from _cast(piece, first + start)
        first += batch.num_rows


def _batches(records: pa.Table | pa.RecordBatchReader) -> Iterable[pa.RecordBatch]:
    found: Iterable[pa.RecordBatch] = records.to_batches() if isinstance(records, pa.Table) else records
    return found


def _cast(batch: pa.RecordBatch, first: int) -> Iterator[pa.RecordBatch]:
    if batch.nbytes > _CAST_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _cast(batch.slice(0, half), first)
        yield from _cast(batch.slice(half), first + half)
        return
    columns = [
        _column(batch, field) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in MESSAGES
    ]
    _check_headers(columns[4])
    _check_each(first, sizes(*columns[2:]) > RECORD_BYTES, f"it has more than the {RECORD_BYTES} bytes of a record")
    stamps = columns[1].cast(pa.int64()).fill_null(0).to_numpy()
    _check_each(
        first,
        (stamps < _FIRST_MS * 1000) | (stamps >= (_LAST_MS + 1) * 1000),
        "its timestamp is no time of the years 1 to 9999",
    )
    yield pa.RecordBatch.from_arrays(columns, schema=MESSAGES)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    found = batch.column(field.name)
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if pa.types.is_null(found.type):
        return pa.nulls(len(found), field.type)
    if not _fits(found.type, field.name):
        wanted = {"headers": "a map, or a list of names and values", "timestamp": "a timestamp with a time zone"}
        raise BadRecords(f"the column {field.name!r} is {found.type}, not {wanted.get(field.name, 'binary or a text')}")
    try:
        if pa.types.is_map(found.type):
            return _listed(found)
        # Nanoseconds lose what microseconds do not have.
        return found.cast(field.type, safe=not (pa.types.is_timestamp(found.type) and found.type.unit == "ns"))
    except pa.ArrowException as error:
        raise BadRecords(f"the column {field.name!r} cannot be had as {field.type}: {error}") from error


def _fits(kind: pa.DataType, name: str) -> bool:
    types = pa.types
    if name == "timestamp":
        return types.is_timestamp(kind) and kind.tz is not None
    headers = (types.is_map, types.is_list, types.is_large_list)
    plain = (types.is_binary, types.is_string, types.is_large_binary, types.is_large_string)
    return any(check(kind) for check in (headers if name == "headers" else plain))


def _listed(headers: pa.MapArray) -> pa.Array:
    """A map as the list of its pairs."""
    lists = [None if pairs is None else _headers_of(pairs) for pairs in headers.to_pylist()]
    return pa.array(lists, MESSAGES.field("headers").type)


def _headers_of(pairs: Iterable[Any]) -> list[dict[str, Any]]:
    try:
        return [_header(pair) for pair in pairs]
    except ValueError as error:
        raise BadRecords(f"the column 'headers': {error}") from None


def _check_headers(headers: pa.Array) -> None:
    pairs = headers.flatten()
    if pairs.null_count or pairs.field("name").null_count:
        raise BadRecords("the column 'headers' has a header without a name")


def _check_each(first: int, wrong: npt.NDArray[np.bool_], problem: str) -> None:
    if wrong.any():
        raise BadRecord(first + int(wrong.argmax()), problem)
