"""A writer of segments for ``tests/support/put_races.py``. Imports little: each process of a race loads it anew."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import Segment
from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.storage.journal.segment_file import SegmentExists, SegmentFile


def put_segments(writer: int, root: str, journal: JournalId) -> Callable[[int], Segment | None]:
    """In each round a segment of the same name; None where another has it."""

    def one_round(each: int) -> Segment | None:
        file = SegmentFile.create(root, journal, partition=0, epoch=1, number=each + 1, first=0)
        file.append(pa.RecordBatch.from_pylist([{"value": b"writer %d" % writer}], schema=MESSAGES))
        try:
            return file.flush()
        except SegmentExists:
            return None
        finally:
            file.close()

    return one_round
