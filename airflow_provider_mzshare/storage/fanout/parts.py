"""The pass over a snapshot: each task reads parts of references by itself, and writes files as any other pass does.

Runs inside ``DataFrame.mapInArrow``. A reference whose snapshot is lost fails the members that take it, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from airflow_provider_mzshare.errors import SnapshotLost
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.results import RESULT_SCHEMA
from airflow_provider_mzshare.storage.fanout.writer import write_partition

PARTS_DDL = "reference string, part string"
"""Spark's schema of what is to be read: a row for each part."""


def write_parts(
    parts: Iterator[pa.RecordBatch], read: Callable[[str], Iterator[pa.RecordBatch]], plan_json: str
) -> Iterator[pa.RecordBatch]:
    """One task: parts in, batches of ``RESULT_SCHEMA`` out."""
    lost: dict[str, str] = {}
    yield from write_partition(_rows(parts, read, lost), plan_json)
    failed = [
        {"table_id": member.table_id, "role": "data", "error": lost[member.reference]}
        for member in FanoutPlan.from_json(plan_json).members
        if member.reference in lost
    ]
    if failed:
        yield pa.RecordBatch.from_pylist(failed, schema=RESULT_SCHEMA)


def _rows(
    parts: Iterator[pa.RecordBatch], read: Callable[[str], Iterator[pa.RecordBatch]], lost: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    for batch in parts:
        for row in batch.to_pylist():
            if row["reference"] in lost:
                continue
            try:
                yield from read(row["part"])
            except SnapshotLost as error:
                lost[row["reference"]] = error.message
