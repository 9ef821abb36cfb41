"""Messages of a journal as the pass takes them: with their place, as records of any upstream. Travels to executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.journal.parts import Part
from airflow_provider_mzshare.journal.reading import read


def records(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """Batches of ``INPUT_SCHEMA``, in the order of the parts."""
    for part in parts:
        for first, messages in read(part.extent):
            yield _placed(part.partition, first, messages)


def _placed(partition: int, first: int, messages: pa.RecordBatch) -> pa.RecordBatch:
    count = messages.num_rows
    columns = {
        "key": messages.column("key"),
        "value": messages.column("value"),
        "partition": pa.array(np.full(count, partition, np.int32)),
        "offset": pa.array(np.arange(first, first + count)),
        "timestamp": messages.column("timestamp"),
    }
    return pa.RecordBatch.from_pydict(columns, schema=INPUT_SCHEMA)
