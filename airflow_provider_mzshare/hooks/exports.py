"""Rows to a file: Parquet, CSV, or JSON with one object a line. A file is there whole or not at all."""

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

FORMATS = ("parquet", "csv", "json")
_ROWS_AT_ONCE = 10_000


def file_format(file: str, chosen: str | None = None) -> str:
    """As told, or as the name says."""
    found = (chosen or PurePosixPath(file).suffix.removeprefix(".")).lower()
    if found not in FORMATS:
        raise TerminalError(f"{file}: a file is one of {', '.join(FORMATS)}, not {found!r}", hint="give file_format")
    return found


def export(rows: pa.Table, file: str, chosen: str) -> None:
    """:param file: a path, or a URI that Airflow's object storage knows."""
    write = {"parquet": parquet.write_table, "csv": pa_csv.write_csv, "json": _write_json}[chosen]
    with _whole_file(file) as out:
        write(rows, out)


def _write_json(rows: pa.Table, out: IO[bytes]) -> None:
    for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            out.write(json.dumps(plain(row), ensure_ascii=False).encode() + b"\n")


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
    """What a file made the plain way would not allow; asking is only possible by setting."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
