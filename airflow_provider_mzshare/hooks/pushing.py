"""What a task pushes, as messages: records that it has, or the lines of a file. Only read, pushed elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.storage.journal.lines import LineFormat, Readable, messages_of_file
from airflow_provider_mzshare.storage.journal.records import messages_of

FORMATS = ("lines", "jsonl")


@contextmanager
def messages(records: Any, file: str | None, file_format: str) -> Iterator[Iterator[pa.RecordBatch]]:
    if file is None:
        yield messages_of(records)
        return
    if file_format not in FORMATS:
        raise TerminalError(f"file_format cannot be {file_format!r}: it is one of {', '.join(FORMATS)}")
    with _opened(file) as opened:
        yield messages_of_file(opened, cast("LineFormat", file_format))


@contextmanager
def _opened(file: str) -> Iterator[Readable]:
    """:param file: a path, or a URI that Airflow's object storage knows."""
    if "://" not in file:
        with Path(file).open("rb") as local:
            yield local
        return
    from airflow.sdk import ObjectStoragePath

    with ObjectStoragePath(file).open("rb") as remote, io.BufferedReader(cast("Any", remote)) as buffered:
        yield buffered


def partition_number(value: int | str | None) -> int | None:
    """A number, also as text, because a template renders to text; None if it is empty."""
    if value is None or value in ("", "None"):
        return None
    try:
        return int(value)
    except ValueError:
        raise TerminalError(f"partition must be a whole number, not {value!r}") from None
