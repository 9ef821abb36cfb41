"""Journals in a catalog, for tests that need no files: what a writer announces, one segment after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import insert, update

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.journal_models import JournalPartitionRow, JournalSegmentRow
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.core.ids import JobId, JournalId
from airflow_provider_mzshare.core.journal.state import Batch, PartitionState, Segment

JOURNAL = JournalId("journal:0123456789abcdef")


class Writer:
    """A holder of a partition that believes what it was told."""

    def __init__(
        self, catalog: Catalog, partition: int = 0, *, job: str = "push-1", journal: JournalId = JOURNAL
    ) -> None:
        self.store = CatalogJournal(catalog, journal).partition(partition)
        self.partition = partition
        self.holder = self.store.claim(JobId(job), stood_still=self.store.lease())
        self.end, self.number = self.store.load().end, 0
        self.segment: Segment | None = None

    def wanted(self, messages: int = 1) -> Segment:
        """What it would announce next."""
        before = self.segment or Segment(
            self.partition, self.holder.epoch, self.number + 1, self.end, self.end, 0, 0, 0, low=self.end * 10
        )
        return replace(
            before,
            end=before.end + messages,
            length=before.length + messages * 10,
            checksum=before.checksum + 1,
            payload=before.payload + messages * 30,
            boundary=(before.end + messages) * 10,
        )

    def announce(self, messages: int = 1, batches: Sequence[Batch] = ()) -> PartitionState:
        after = self.wanted(messages)
        state = self.store.announce(self.holder, self.segment, after, batches)
        self.segment, self.end, self.number = after, after.end, after.number
        return state

    def begin(self, messages: int = 1) -> PartitionState:
        """A segment of its own."""
        self.segment = None
        return self.announce(messages)

    def batch(self, name: str, messages: int = 1, digest: str = "d") -> Batch:
        """The next messages, as a batch."""
        return Batch(name, self.partition, self.end, self.end + messages, digest)


def lengthen(catalog: Catalog, writer: Writer, segments: int) -> None:
    """As if so many segments of ten messages had been announced after the newest."""
    newest, journal = writer.segment, writer.store._journal
    assert newest is not None
    rows = [
        vars(replace(newest, number=newest.number + i, first=newest.end + i * 10 - 10, end=newest.end + i * 10))
        for i in range(1, segments + 1)
    ]
    last = rows[-1]
    with catalog.write() as session:
        session.execute(insert(JournalSegmentRow), [{"journal": journal} | row for row in rows])
        session.execute(
            update(JournalPartitionRow)
            .where(JournalPartitionRow.journal == journal, JournalPartitionRow.partition == writer.partition)
            .values(
                end=last["end"],
                newest_first=last["first"],
                newest_number=last["number"],
                segments=newest.number + segments,
            )
        )
    writer.end, writer.number, writer.segment = last["end"], last["number"], Segment(**last)
