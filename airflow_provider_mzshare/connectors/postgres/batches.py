"""Messages of the journal as the pass takes them: rows, each batch of one relation. Travels to executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from airflow_provider_mzshare.connectors.postgres.decoding import rows
from airflow_provider_mzshare.journal.parts import Part
from airflow_provider_mzshare.journal.reading import prologue, read


def changes(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """In the order of the parts, relation by relation within what is decoded at once."""
    for part in parts:
        relations = prologue(part.extent.path, part.extent.length)
        for _, messages in read(part.extent):
            yield from rows(messages, relations)
