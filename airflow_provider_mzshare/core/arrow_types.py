"""Column types as Arrow's. Travels to Spark's executors."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_mzshare.core.schema import Columns, numeric_parts

_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
    "text": pa.string(),
    "jsonb": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}


def arrow_type(type_name: str) -> pa.DataType:
    parts = numeric_parts(type_name)
    return pa.decimal128(*parts) if parts else _ARROW_TYPES[type_name]


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, arrow_type(type_name)) for name, type_name in columns])
