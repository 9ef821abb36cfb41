"""Parquet files of columns that are encoded once and copied into the file of every table that has them.

The bytes of a column chunk name neither the file nor the column, nor where in the file they stand: only footers do.
So Arrow writes each distinct column once, into memory, as a file of its own; its bytes go into any number of files as
they are, and each file gets a footer in which names and positions are its own. The outcome is, byte for byte, the file
that Arrow would have written. Whether this is so with the Arrow that is installed is tried before it is relied on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.schema import TICK, system_names
from airflow_provider_mzshare.storage.fanout.thrift import (
    Struct,
    frozen,
    number,
    read_struct,
    small_number,
    struct,
    structs,
    texts,
    write_struct,
)

_MAGIC = b"PAR1"
_COLUMN = "column"

# Fields of the footer's structs, by their numbers in Parquet's definition.
_FILE_ROWS, _FILE_GROUPS = 3, 4
_GROUP_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_COMPRESSED, _GROUP_ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_OFFSET, _CHUNK_META = 2, 3
_META_PATH, _META_COMPRESSED, _META_PAGES = 3, 7, (9, 10, 11)


class Encoding(NamedTuple):
    """How a column is written. Two columns of the same values that are written in the same way have the same bytes."""

    dictionary: bool = False
    packed: bool = False
    statistics: bool = False


def encodings(schema: pa.Schema, place: Place) -> dict[str, Encoding]:
    """Speed first, as compaction rewrites these files. A dictionary of nearly unique numbers costs time and room."""
    system = system_names(schema.names)
    counted = place.column(place.counted)
    packed = () if counted.is_wide else (counted.name,)
    repeated = {TICK, *place.names}.difference(packed)
    return {
        field.name: Encoding(
            pa.types.is_string(field.type) or pa.types.is_binary(field.type) or field.name in repeated,
            field.name in packed,
            field.name in system,
        )
        for field in schema
    }


def parquet_options(columns: Mapping[str, Encoding]) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [name for name, how in columns.items() if how.dictionary],
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name, how in columns.items() if how.packed},
        "write_statistics": [name for name, how in columns.items() if how.statistics],
        "store_schema": False,
    }


class Chunk(NamedTuple):
    """A column of one row group: its bytes, and its entry in the footer of the file that Arrow wrote for it alone."""

    data: pa.Buffer
    group: Struct
    column: Struct
    meta: Struct


def encode(values: pa.Array, how: Encoding) -> Chunk:
    schema = pa.schema([(_COLUMN, values.type)])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **parquet_options({_COLUMN: how})) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([values], schema=schema))
    file = sink.getvalue()
    (group,) = _footer(file)[_FILE_GROUPS].value.values
    (column,) = group[_GROUP_COLUMNS].value.values
    meta = column[_CHUNK_META].value
    return Chunk(file.slice(len(_MAGIC), meta[_META_COMPRESSED].value), group, column, frozen(meta))


class Sink(Protocol):
    def write(self, data: Any) -> object: ...


class SplicedFile:
    """A file that is being put together, a row group at a time."""

    def __init__(self, sink: Sink, schema: pa.Schema, columns: Mapping[str, Encoding]) -> None:
        self._footer = _empty_footer(schema, tuple(columns.items()))
        self._names, self._sink = schema.names, sink
        self._at = self._rows = 0
        self._groups: list[Struct] = []
        self._write(_MAGIC)

    def write(self, chunks: Sequence[Chunk], rows: int) -> None:
        begin = self._at
        columns = []
        for name, chunk in zip(self._names, chunks, strict=True):
            columns.append(_moved(chunk, name, self._at - len(_MAGIC)))
            self._write(chunk.data)
        group = dict(chunks[0].group)
        group[_GROUP_COLUMNS] = structs(columns)
        group[_GROUP_ROWS], group[_GROUP_OFFSET] = number(rows), number(begin)
        for field in (_GROUP_BYTES, _GROUP_COMPRESSED):
            group[field] = number(sum(chunk.group[field].value for chunk in chunks))
        if _GROUP_ORDINAL in group:
            group[_GROUP_ORDINAL] = small_number(len(self._groups))
        self._groups.append(group)
        self._rows += rows

    def close(self) -> None:
        footer = write_struct({**self._footer, _FILE_ROWS: number(self._rows), _FILE_GROUPS: structs(self._groups)})
        self._write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def _write(self, data: Any) -> None:
        self._sink.write(data)
        self._at += len(data)


@lru_cache(maxsize=1_000)
def _empty_footer(schema: pa.Schema, columns: tuple[tuple[str, Encoding], ...]) -> Struct:
    """The footer of a file without rows. It is the same for each tick of a table."""
    empty = pa.BufferOutputStream()
    pq.ParquetWriter(empty, schema, **parquet_options(dict(columns))).close()
    return frozen(_footer(empty.getvalue()))


def _footer(file: pa.Buffer) -> Struct:
    end = file.size - 8
    size = int.from_bytes(file.slice(end, 4).to_pybytes(), "little")
    return read_struct(file.slice(end - size, size).to_pybytes())


def _moved(chunk: Chunk, name: str, by: int) -> Struct:
    meta = {**chunk.meta, _META_PATH: texts(name)}
    for page in _META_PAGES:
        if page in meta:
            meta[page] = number(meta[page].value + by)
    column = {**chunk.column, _CHUNK_META: struct(meta)}
    if column[_CHUNK_OFFSET].value:
        column[_CHUNK_OFFSET] = number(column[_CHUNK_OFFSET].value + by)
    return column


@cache
def is_exact() -> bool:
    """Whether a file that is put together is the one that Arrow writes. Another Arrow might have another footer."""
    try:
        return _sample_is_exact()
    except (ValueError, LookupError, TypeError, pa.ArrowException):
        return False


def _sample_is_exact() -> bool:
    columns = {
        "number": (Encoding(), pa.array([1, None, 3])),
        "word": (Encoding(dictionary=True), pa.array(["a", "a", None])),
        "exact": (Encoding(), pa.array([None, None, Decimal("1.5")], pa.decimal128(9, 2))),
        "packed": (Encoding(packed=True, statistics=True), pa.array([7, 8, 9])),
    }
    sample = pa.table({name: values for name, (_, values) in columns.items()})
    hows = {name: how for name, (how, _) in columns.items()}
    written, spliced = pa.BufferOutputStream(), pa.BufferOutputStream()
    file = SplicedFile(spliced, sample.schema, hows)
    with pq.ParquetWriter(written, sample.schema, **parquet_options(hows)) as writer:
        for batch in sample.to_batches(max_chunksize=2):
            writer.write_batch(batch)
            chunks = [encode(values, how) for values, how in zip(batch.columns, hows.values(), strict=True)]
            file.write(chunks, batch.num_rows)
    file.close()
    return bool(written.getvalue().equals(spliced.getvalue()))
