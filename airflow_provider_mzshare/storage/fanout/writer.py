"""The pass itself: writes one Parquet file per collection and task, and commits nothing.

Runs inside ``DataFrame.mapInArrow``. A failure of one member is returned as that member's row and harms no other.
A failure of the read, which concerns all, is raised after the files of this attempt are removed.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from airflow_provider_mzshare.connectors.records import from_spark, no_garbage_collection
from airflow_provider_mzshare.storage.fanout.decode import Decoded, SharedBatch
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS, hash_table
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import EVENTS, FanoutPlan, MemberPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.readers import Readers
from airflow_provider_mzshare.storage.fanout.received import Count, Received, received_in
from airflow_provider_mzshare.storage.fanout.results import RESULT_SCHEMA, WrittenFile
from airflow_provider_mzshare.storage.fanout.rows import Rows, bounds_of
from airflow_provider_mzshare.storage.fanout.splicing import (
    Encoding,
    SplicedFile,
    encode,
    encodings,
    is_exact,
    parquet_options,
)

_PIECE_ROWS = 32_768
_PIECE_BYTES = 64 << 20
_BUFFER_BYTES = 256 << 10
SPLICED_FROM = 8  # tables; with fewer, and few records, encoding columns separately costs more than it saves
_ERROR_LENGTH = 500


def write_partition(batches: Iterator[pa.RecordBatch], plan_json: str) -> Iterator[pa.RecordBatch]:
    """One task of the pass: what Spark gives in, one batch of ``RESULT_SCHEMA`` out if there was a record."""
    plan = FanoutPlan.from_json(plan_json)
    readers, ticks = Readers(plan), TickNumbers(plan.tick, plan.ends, plan.place)
    spliced = len(plan.members) >= SPLICED_FROM and is_exact()
    outputs = [_MemberOutput(member, plan.file_prefix, spliced=spliced) for member in plan.members]
    received, count = Received(), Count(plan.counts)
    try:
        for batch in from_spark(batches):
            received += received_in(batch)
            count.tell(received.messages)
            for piece in _pieces(batch) if outputs else ():
                with no_garbage_collection():
                    shared = SharedBatch(piece, ticks, readers)
                    for output in outputs:
                        output.take(shared)
        rows = [row for output in outputs for row in output.finish()] + received.to_rows()
    except BaseException:
        for output in outputs:
            output.discard()
        raise
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=RESULT_SCHEMA)


def read_and_write(
    numbers: Iterator[pa.RecordBatch],
    texts: Sequence[str],
    read: Callable[[str], Iterator[pa.RecordBatch]],
    plan_json: str,
) -> Iterator[pa.RecordBatch]:
    """The same for a task that reads by itself: Spark gives in the numbers of its parts."""
    mine = (number for batch in numbers for number in batch.column(0).to_pylist())
    yield from write_partition((batch for number in mine for batch in read(texts[number])), plan_json)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Parsed JSON needs several times the memory of its text: so large batches are decoded in parts."""
    rows = max(1, min(_PIECE_ROWS, batch.num_rows * _PIECE_BYTES // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


class _MemberOutput:
    """The files of a member in this task, at most one for data and one for errors, and their results."""

    def __init__(self, member: MemberPlan, file_prefix: str, *, spliced: bool) -> None:
        self.member, self._file_prefix, self._spliced = member, file_prefix, spliced
        self._files: dict[str, _OutputFile] = {}
        self._failure: dict[str, object] | None = None
        self._bad_record: tuple[Any, ...] | None = None
        """The place of the bad record, and its error."""

    def take(self, shared: SharedBatch) -> None:
        if self._failure:
            return
        role = "data"
        try:
            decoded = shared.decode(self.member)
            if self.member.stop_on_error and (decoded.errors or self._bad_record):
                self._note_bad_record(decoded)
                return
            for role, rows in (("data", decoded.data), ("errors", decoded.errors)):
                if rows:
                    self._file(role).write(rows)
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is this member's alone
            self._fail(role, problem)

    def _file(self, role: str) -> _OutputFile:
        if role not in self._files:
            folder = self.member.folders[role]
            schema = _schema(self.member, role)
            columns = encodings(schema, self.member.place)
            self._files[role] = _OutputFile(folder, schema, columns, self._file_prefix, spliced=self._spliced)
        return self._files[role]

    def _note_bad_record(self, decoded: Decoded) -> None:
        """The table stops: nothing of this pass is committed for it. The bad record with the lowest place says why."""
        self.discard()
        if decoded.errors:
            placed = decoded.errors.batch.select([*self.member.place.names, "error"])
            found = min(tuple(row.values()) for row in placed.to_pylist())
            self._bad_record = min(found, self._bad_record or found)

    def _fail(self, role: str, problem: Exception) -> None:
        self.discard()
        text = " ".join(f"{type(problem).__name__}: {problem}".split())[:_ERROR_LENGTH]
        self._failure = {"table_id": self.member.table_id, "role": role, "error": text, "fault": fault_of(problem)}

    def finish(self) -> list[dict[str, object]]:
        rows = []
        for role, file in list(self._files.items()):
            try:
                rows.append({"table_id": self.member.table_id, "role": role, **file.finish()})
            except Exception as problem:  # noqa: BLE001 - as above
                self._fail(role, problem)
                break
        if self._failure:
            return [self._failure]
        if self._bad_record:
            *place, text = self._bad_record
            at = json.dumps(place, default=int)
            return [{"table_id": self.member.table_id, "role": "errors", "first_error": text, "error_at": at}]
        return rows

    def discard(self) -> None:
        while self._files:
            self._files.popitem()[1].discard()


def write_errors(member: MemberPlan, file_prefix: str, rows: pa.RecordBatch) -> WrittenFile:
    """Error rows that were found after the pass, as a file that no commit names yet."""
    schema = errors_schema(member.place)
    file = _OutputFile(member.folders["errors"], schema, encodings(schema, member.place), file_prefix, spliced=False)
    hash_sum = hash_table(rows, member.hash_version)
    file.write(Rows(rows, hash_sum, bounds_of(rows), lambda number, how: encode(rows.column(number), how)))
    done = file.finish()
    return WrittenFile(file.name, cast("int", done["size"]), rows.num_rows, str(done["stats"]), hash_sum)


def _schema(member: MemberPlan, role: str) -> pa.Schema:
    if role == "errors":
        return errors_schema(member.place)
    return member.events_schema if member.keys else data_schema(member)


class _OutputFile:
    """A Parquet file that is being written, under a name that no other attempt uses."""

    def __init__(
        self, folder: str, schema: pa.Schema, columns: Mapping[str, Encoding], prefix: str, *, spliced: bool
    ) -> None:
        self.name = f"{prefix}{uuid.uuid4()}.parquet"
        self._rows = self._hash = 0
        self._bounds: dict[str, tuple[int, int]] = {}
        self._filesystem, path = _filesystem(folder)
        if path.endswith(EVENTS):
            # Not its parents: a folder that is gone must not come back empty.
            self._filesystem.create_dir(path, recursive=False)
        self._path = f"{path.rstrip('/')}/{self.name}"
        self._sink = self._filesystem.open_output_stream(self._path, buffer_size=_BUFFER_BYTES)
        self._columns = columns
        self._writer: SplicedFile | pq.ParquetWriter = (
            SplicedFile(self._sink, schema, columns)
            if spliced
            else pq.ParquetWriter(self._sink, schema, **parquet_options(columns))
        )

    def write(self, rows: Rows) -> None:
        if isinstance(self._writer, SplicedFile):
            chunks = [rows.chunk(number, how) for number, how in enumerate(self._columns.values())]
            self._writer.write(chunks, rows.batch.num_rows)
        else:
            self._writer.write_batch(rows.batch)
        self._rows += rows.batch.num_rows
        self._hash = (self._hash + rows.hash) % MODULUS
        for name, (least, greatest) in rows.bounds.items():
            low, high = self._bounds.get(name, (least, greatest))
            self._bounds[name] = min(low, least), max(high, greatest)

    def finish(self) -> dict[str, object]:
        """Close the file, and return what a commit needs to know of it, as columns of ``RESULT_SCHEMA``."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        stats = {
            "numRecords": self._rows,
            "minValues": {name: low for name, (low, _) in self._bounds.items()},
            "maxValues": {name: high for name, (_, high) in self._bounds.items()},
            "nullCount": dict.fromkeys(self._bounds, 0),
        }
        text = json.dumps(stats, separators=(",", ":"))
        return {"path": self.name, "size": size, "rows": self._rows, "stats": text, "hash": f"{self._hash:032x}"}

    def discard(self) -> None:
        """Try to remove the file. If that fails, a file remains that no commit names."""
        for step in (self._writer.close, self._sink.close, lambda: self._filesystem.delete_file(self._path)):
            with contextlib.suppress(Exception):
                step()


def _filesystem(folder: str) -> tuple[fs.FileSystem, str]:
    if "://" in folder:
        filesystem, path = fs.FileSystem.from_uri(folder)
        return filesystem, path
    return fs.LocalFileSystem(), folder
