"""Batches as Spark's Kafka reader gives them, for the tests of the fan-out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan

TICK = 9
MICROS = 1_700_000_000_123_456


def batch_of(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    partition: int = 0,
    first: int = 0,
    micros: Sequence[int | None] | None = None,
) -> pa.RecordBatch:
    rows = len(values)
    columns = [
        pa.array(keys or [None] * rows, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array([partition] * rows, pa.int32()),
        pa.array(range(first, first + rows), pa.int64()),
        pa.array(micros or [MICROS] * rows, pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INPUT_SCHEMA)


def member(*columns: tuple[str, str], id: str = "u1", format: str = "json", **more: Any) -> MemberPlan:
    fields: dict[str, Any] = {"include": (), "data_path": "", "errors_path": "", **more}
    return MemberPlan(id, format_target(format), columns, **fields)


def decode_one(
    table: MemberPlan, value: bytes | None, key: bytes | None = None, micros: int | None = MICROS
) -> dict[str, Any] | str:
    """The row without its system columns, or the error's text."""
    decoded = decode_batch(batch_of([value], keys=[key], micros=[micros]), FanoutPlan(TICK, (table,)))[table.table_id]
    if decoded.errors:
        assert decoded.data is None
        return str(decoded.errors.batch.column("error")[0].as_py())
    assert decoded.data is not None
    return {name: cell for name, cell in decoded.data.batch.to_pylist()[0].items() if not name.startswith("_mz_")}
