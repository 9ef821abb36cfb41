"""How much a pass has read, once for all members: records or rows, and their bytes."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.records import size_of

ROLE = "received"
"""The role of the result row that belongs to no member."""


@dataclass(frozen=True)
class Received:
    messages: int = 0
    bytes: int = 0

    def __add__(self, other: Received) -> Received:
        return Received(self.messages + other.messages, self.bytes + other.bytes)

    def to_rows(self) -> list[dict[str, object]]:
        """A row of ``RESULT_SCHEMA``; none if nothing was read."""
        return [{"table_id": "", "role": ROLE, "rows": self.messages, "size": self.bytes}] if self.messages else []


def received_in(batch: pa.RecordBatch) -> Received:
    return Received(batch.num_rows, size_of(batch))


def received(rows: Iterable[Mapping[str, Any]]) -> Received:
    """The sum over all tasks of a pass."""
    found = [row for row in rows if row["role"] == ROLE]
    return Received(sum(row["rows"] for row in found), sum(row["size"] for row in found))


class Count:
    """How many records a task has read so far, in a file of its own, for the driver to show.

    Nothing is decided by it: if the file cannot be written, no error is raised.
    """

    def __init__(self, folder: str) -> None:
        self._file = Path(folder, uuid.uuid4().hex) if folder else None

    def tell(self, messages: int) -> None:
        if self._file:
            with contextlib.suppress(OSError):
                self._file.write_text(str(messages))


def counted(folder: str) -> int:
    """The sum over all tasks that count in this folder. A file that is being written may count next time."""
    total = 0
    for file in Path(folder).iterdir():
        text = file.read_text()
        total += int(text) if text else 0
    return total
