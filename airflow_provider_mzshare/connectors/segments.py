"""What sources that are read from a journal's segments have in common: parts of their files, and what is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import Segment, path_of
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.journal.parts import Part
from airflow_provider_mzshare.journal.reading import DamagedSegment, Extent

GONE = "journal_gone"
DAMAGED = "journal_damaged"


def path_in(root: str, journal: JournalId, segment: Segment) -> str:
    return f"{root.rstrip('/')}/{path_of(journal, segment)}"


def part_of(root: str, journal: JournalId, segment: Segment, lower: int, upper: int) -> Part:
    """:param lower: an offset, as ``upper``."""
    extent = Extent(path_in(root, journal, segment), segment.first, segment.length, lower, upper)
    return Part(segment.partition, extent, segment.payload / segment.messages)


def damaged(error: DamagedSegment) -> UpstreamChanged:
    """What needs the file stalls, and says which file it is."""
    return UpstreamChanged(
        DAMAGED,
        error.message,
        hint="put the file back from a backup, then ALTER TABLE … RESUME, or start the source again",
    )


def told_of_damage(parts: Sequence[Part], error: BaseException) -> bool:
    """Whether Spark reports a file of these as damaged: it passes on no more than the text of an error."""
    text = str(error)
    return DamagedSegment.__name__ in text and any(part.extent.path in text for part in parts)


@contextmanager
def telling() -> Iterator[None]:
    """A file that is damaged is told as ``damaged`` says."""
    try:
        yield
    except DamagedSegment as error:
        raise damaged(error) from error


def telling_of_damage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, while these are read."""
    with telling():
        yield from batches
