"""The records that every connector gives, whatever it reads. Travels to Spark's executors."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.core.arrow_types import arrow_type


@cache
def input_schema(place: Place) -> pa.Schema:
    """What the pass is given of an upstream with such places. A time that no table can hold may come as NULL."""
    placed = [(column.given, arrow_type(column.type)) for column in place.columns]
    head, last = [("key", pa.binary()), ("value", pa.binary())], ("timestamp", pa.timestamp("us", "UTC"))
    return pa.schema([*head, *placed, last])


INPUT_SCHEMA = input_schema(PARTITIONED)
"""Of Kafka and of load generators: Spark's Kafka columns."""
