"""What a fan-out pass returns to the driver: a row per file or failure, and their sum per member. Touches no file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.storage.fanout.fault_numbers import Fault
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS
from airflow_provider_mzshare.storage.fanout.received import ROLE, Received

RESULT_SCHEMA = pa.schema(
    [
        ("table_id", pa.string()),
        ("role", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("stats", pa.string()),
        ("hash", pa.string()),
        ("error", pa.string()),
        ("fault", pa.string()),
        ("first_error", pa.string()),
        ("error_at", pa.string()),
    ]
)
"""``path`` is relative to the collection and NULL where nothing was written; ``hash`` is 32 hex digits; ``error_at`` is
the place of ``first_error``, as a JSON list."""

RESULT_DDL = (
    "table_id string, role string, path string, size bigint, rows bigint, stats string, hash string, error string, "
    "fault string, first_error string, error_at string"
)
"""The same for ``DataFrame.mapInArrow``."""


@dataclass(frozen=True)
class WrittenFile:
    """A finished Parquet file that no commit names yet. ``stats`` is JSON as Delta's log has it."""

    path: str
    size: int
    rows: int
    stats: str
    hash: int


@dataclass
class MemberResult:
    """The result of all tasks for one member. Its files may be committed only if both errors are None."""

    files: dict[str, list[WrittenFile]] = field(default_factory=lambda: {"data": [], "errors": []})
    error: str | None = None
    """Why the member could not be written (disk full, folder gone, …)."""
    fault: Fault | None = None
    """Set if that was a fault of the storage, and not of the member."""
    first_error: str | None = None
    """``ON DECODE ERROR = 'STOP'``: the bad record with the lowest place."""
    first_error_at: tuple[Any, ...] | None = None
    received: Received | None = None
    """What the whole pass has read, for the log entry of a commit; None if there was no pass."""

    def rows(self, role: str) -> int:
        return sum(file.rows for file in self.files[role])

    def hash(self, role: str) -> int:
        return sum(file.hash for file in self.files[role]) % MODULUS


def merge_results(rows: Iterable[Mapping[str, Any]]) -> dict[str, MemberResult]:
    """Sum the rows of all tasks (Arrow ``to_pylist()``, or Spark rows as dicts). Members without any row are absent."""
    members: dict[str, MemberResult] = {}
    for row in rows:
        if row["role"] == ROLE:
            continue
        member = members.setdefault(row["table_id"], MemberResult())
        if row["path"] is not None:
            file = WrittenFile(row["path"], row["size"], row["rows"], row["stats"], int(row["hash"], 16))
            member.files[row["role"]].append(file)
        member.error = member.error or row["error"]
        member.fault = member.fault or row["fault"]
        if row["first_error"] is not None:
            at = tuple(json.loads(row["error_at"]))
            if member.first_error_at is None or at < member.first_error_at:
                member.first_error, member.first_error_at = row["first_error"], at
    return members
