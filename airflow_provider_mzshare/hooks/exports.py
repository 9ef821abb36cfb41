"""Rows to a file: Parquet, CSV, or JSON with one object a line. A file is written completely or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import pyarrow as pa
from pyarrow import csv as pa_csv
from pyarrow import parquet

from airflow_provider_mzshare.cli.render import plain
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.storage.collections.values import python_rows, with_texts

FORMATS = ("parquet", "csv", "json")


def file_format(file: str, chosen: str | None = None) -> str:
    """The chosen format, or the one that the file's name ends with."""
    found = (chosen or PurePosixPath(file).suffix.removeprefix(".")).lower()
    if found not in FORMATS:
        raise TerminalError(
            f"{file}: the file's format must be one of {', '.join(FORMATS)}, not {found!r}", hint="give file_format"
        )
    return found


def export(rows: pa.RecordBatchReader | pa.Table, file: str, chosen: str) -> int:
    """Write all rows, a batch at a time, and return how many there were.

    :param file: a path, or a URI that Airflow's object storage knows.
    """
    write = {"parquet": _write_parquet, "csv": _write_csv, "json": _write_json}[chosen]
    with _whole_file(file) as out:
        return write(rows.to_reader() if isinstance(rows, pa.Table) else rows, out)


def _write_parquet(rows: pa.RecordBatchReader, out: IO[bytes]) -> int:
    count = 0
    with parquet.ParquetWriter(out, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _write_csv(rows: pa.RecordBatchReader, out: IO[bytes]) -> int:
    count = 0
    head = pa_csv.WriteOptions(include_header=True)
    for batch in rows:
        pa_csv.write_csv(with_texts(batch), out, head)
        head, count = pa_csv.WriteOptions(include_header=False), count + batch.num_rows
    if not count:
        pa_csv.write_csv(rows.schema.empty_table(), out)
    return count


def _write_json(rows: pa.RecordBatchReader, out: IO[bytes]) -> int:
    count = 0
    for batch in rows:
        for row in python_rows(batch):
            out.write(json.dumps(plain(row), ensure_ascii=False).encode() + b"\n")
        count += batch.num_rows
    return count


@contextmanager
def _whole_file(file: str) -> Iterator[IO[bytes]]:
    if "://" in file:
        from airflow.sdk import ObjectStoragePath

        with ObjectStoragePath(file).open("wb") as out:  # an object appears when it is closed
            yield out
        return
    target = Path(file).expanduser().absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as out:
            yield out
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    """The umask of this process; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
