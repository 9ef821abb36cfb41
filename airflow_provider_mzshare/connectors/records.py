"""The records that every connector gives, whatever it reads: one schema. Travels to Spark's executors."""

from __future__ import annotations

import pyarrow as pa

INPUT_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
"""What the pass is given: Spark's Kafka columns, ``SELECT key, value, partition, offset, timestamp``.

A time that no table can hold may come as NULL.
"""
