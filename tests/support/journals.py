"""Messages and segments for tests of journals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import Segment, path_of
from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.journal.reading import Extent, read
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile

JOURNAL = JournalId("journal:0011223344556677")

Message = Mapping[str, Any]

_NUMBERS = st.integers(-(2**63), 2**63 - 1)
_TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(timezone.utc))
_HEADERS = st.lists(st.fixed_dictionaries({"name": st.text(max_size=5), "value": st.none() | st.binary(max_size=5)}))
MESSAGE = st.fixed_dictionaries(
    {
        "position": st.none() | _NUMBERS,
        "timestamp": st.none() | _TIMES,
        "key": st.none() | st.binary(max_size=20),
        "value": st.none() | st.binary(max_size=300),
        "headers": st.none() | _HEADERS,
    }
)


def batch_of(messages: Sequence[Message]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(each) for each in messages], schema=MESSAGES)


def values(*given: bytes | None) -> pa.RecordBatch:
    return batch_of([{"value": value} for value in given])


def numbered(first: int, count: int, value: Callable[[int], bytes] = lambda n: b"message %d" % n) -> pa.RecordBatch:
    """Messages that tell their offsets."""
    return values(*(value(n) for n in range(first, first + count)))


def write_segment(
    root: Path | str, batches: Sequence[pa.RecordBatch], *, first: int = 0, number: int = 1, prologue: bytes = b""
) -> Segment:
    """A segment, flushed after its last batch."""
    Path(str(root)).mkdir(exist_ok=True) if "://" not in str(root) else None
    # One that goes on where another ended finds its folder there.
    if first and "://" not in str(root):
        Path(root, path_of(JOURNAL, Segment(0, 1, number, 0, 0, 0, 0, 0))).parent.mkdir(parents=True, exist_ok=True)
    file = SegmentFile.create(str(root), JOURNAL, partition=0, epoch=1, number=number, first=first, prologue=prologue)
    try:
        for batch in batches:
            file.append(batch)
        return file.flush()
    finally:
        file.close()


def place_of(root: Path | str, segment: Segment) -> str:
    return f"{root}/{path_of(JOURNAL, segment)}"


def extent_of(root: Path | str, segment: Segment, lower: int | None = None, upper: int | None = None) -> Extent:
    ends = segment.first if lower is None else lower, segment.end if upper is None else upper
    return Extent(place_of(root, segment), segment.first, segment.length, *ends)


def messages_of(extent: Extent) -> list[dict[str, Any]]:
    """What is read, after a look at the offsets that it is given with."""
    found: list[dict[str, Any]] = []
    for offset, batch in read(extent):
        assert offset == extent.lower + len(found)
        assert batch.schema == MESSAGES
        assert batch.num_rows > 0
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def values_of(extent: Extent) -> list[bytes | None]:
    return [message["value"] for message in messages_of(extent)]
