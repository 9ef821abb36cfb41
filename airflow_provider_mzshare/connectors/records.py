"""What every connector gives, whatever it reads. Travels to Spark's executors.

Records have a key and a value, which a format decodes. An upstream that has columns of its own gives rows instead:
their columns stand in one struct, of any Arrow types that become those of a table without loss, so nobody prints and
parses them. Between Spark's processes rows go as chunks, many rows in one cell: Spark would take every cell apart and
put it together again, and all rows of a source would have to have the same columns.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.core.arrow_types import arrow_type

ROW = "row"
"""The struct of a row's columns."""
REFERENCE, MARKS = b"mz_reference", b"mz_marks"
"""What the schema of such rows says: whose they are, and what the upstream said of that."""
CHUNK = "chunk"
CHUNK_DDL = f"{CHUNK} binary"
"""Spark's schema for an upstream that gives rows."""

_TIMESTAMP = pa.timestamp("us", "UTC")


@cache
def input_schema(place: Place) -> pa.Schema:
    """The columns that the pass gets from an upstream with such places. A time that no table can hold may be NULL."""
    return pa.schema([("key", pa.binary()), ("value", pa.binary()), *_placed(place), ("timestamp", _TIMESTAMP)])


def _placed(place: Place) -> list[tuple[str, pa.DataType]]:
    return [(column.given, arrow_type(column.type)) for column in place.columns]


INPUT_SCHEMA = input_schema(PARTITIONED)
"""Of Kafka and of load generators: Spark's Kafka columns."""


def row_batch(
    place: Place, at: Sequence[pa.Array], timestamps: pa.Array, columns: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """Rows of one reference.

    :param at: a column for each of the place.
    """
    row = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    schema = pa.schema([*_placed(place), ("timestamp", _TIMESTAMP), (ROW, row.type)])
    return pa.RecordBatch.from_arrays([*at, timestamps, row], schema=schema)


def of_reference(batch: pa.RecordBatch, reference: str, marks: Mapping[str, object] | None) -> pa.RecordBatch:
    """Rows of a source with several references, which say whose they are.

    :param marks: what the upstream says of the reference: its ``name``, its ``columns`` with their types, and ``keys``,
        the columns that it sends of a row that goes away. None: who gives the rows has compared them.
    """
    said = {REFERENCE: reference.encode()} | ({MARKS: json.dumps(marks).encode()} if marks else {})
    return batch.replace_schema_metadata(said)


def as_records(batch: pa.RecordBatch, place: Place) -> pa.RecordBatch:
    """Records as they are. Rows become records without key and value, with their struct as the last column. The cast is
    needed because Spark gives timestamps the session's zone, and large types if it is told to.
    """
    schema = input_schema(place)
    if ROW not in batch.schema.names:
        return batch.select(schema.names).cast(schema)
    nothing = pa.nulls(batch.num_rows, pa.binary())
    columns = {"key": nothing, "value": nothing, **{name: batch.column(name) for name in batch.schema.names}}
    of_rows = schema.append(batch.schema.field(ROW)).with_metadata(batch.schema.metadata)
    return pa.RecordBatch.from_pydict(columns, schema=of_rows)


def as_values(rows: pa.StructArray) -> pa.Array:
    """Rows as records have them, for who has to show a row: JSON of what is there. Slow."""
    return pa.array([_as_json(row) for row in rows.to_pylist()], pa.binary())


def _as_json(row: Mapping[str, object]) -> bytes:
    there = {name: value for name, value in row.items() if value is not None}
    return json.dumps(there, default=_as_text, ensure_ascii=False, separators=(",", ":")).encode()


def _as_text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def size_of(batch: pa.RecordBatch) -> int:
    """Bytes of keys and values, or of the rows' columns."""
    if ROW in batch.schema.names:
        return int(batch.column(ROW).nbytes)
    return sum(pc.sum(pc.binary_length(batch.column(name))).as_py() or 0 for name in ("key", "value"))


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as chunks, for the way through Spark."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        cell = sink.getvalue()
        ends = pa.array([0, len(cell)], pa.int32()).buffers()[1]
        yield pa.RecordBatch.from_pydict({CHUNK: pa.Array.from_buffers(pa.binary(), 1, [None, ends, cell])})


def from_spark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of records or of rows."""
    for batch in batches:
        if CHUNK not in batch.schema.names:
            yield batch
            continue
        for chunk in batch.column(CHUNK):
            yield from pa.ipc.open_stream(chunk.as_buffer())


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """To fetch and to parse records creates many objects and no cycles: the collector would search them for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
