"""Removes files of journals that nobody reads: what is old and was trimmed a while ago, and what never counted.

A writer dies before it announces, or abandons a file whose messages were refused. Nothing is removed that is younger
than a day, that the present epoch may still announce, or of which the catalog does not know what it is. What is newer
than all that is announced stays, too: it is what tells a restored catalog that something is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.fs as pafs

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal, CatalogPartition
from airflow_provider_mzshare.control.catalog.objects.lookup import SourceItem
from airflow_provider_mzshare.core.journal.retention import may_go, may_go_below, needed, unnamed_may_go
from airflow_provider_mzshare.core.journal.state import PartitionState, Segment, path_of
from airflow_provider_mzshare.storage.collections.expiry import GRACE, MIN_AGE_UNNAMED
from airflow_provider_mzshare.storage.collections.log import open_filesystem
from airflow_provider_mzshare.storage.journal.segment_file import list_segments, remove_segment

PAGE = 1_000
"""Segments looked at at once."""


@dataclass(frozen=True)
class Swept:
    """What was removed, or in a dry run would be."""

    files: tuple[str, ...] = ()
    bytes: int = 0


def trim_old(catalog: Catalog, source: SourceItem, journal: CatalogJournal, now_ms: int) -> None:
    """``RETAIN JOURNAL FOR``: from now on nobody begins to read what is older and needed by none of its tables."""
    if source.settings.retain_journal_seconds is None:
        return
    with catalog.read() as session:
        state = load_state(session, get_source(session, source.id))
    keep = needed(state)
    if kind_of(source.spec).is_recorded:
        # Also of a source without tables: its ticks go on where they ended.
        keep = (keep or state.upper).meet(state.upper)
    before, kind = now_ms - source.settings.retain_journal_seconds * 1_000, kind_of(source.spec)
    for found in journal.partitions():
        begin, partition = found.begin, journal.partition(found.partition)
        # What is recorded of a database is needed from a place in its own log on.
        lane, decide = (kind.place.only_lane, may_go_below) if kind.is_recorded else (found.partition, may_go)
        keep_from = None if keep is None else keep[lane]
        while segments := journal.segments(found.partition, begin, found.end, limit=PAGE):
            trimmed = partition.trim(decide(segments, keep_from, before)).begin
            if trimmed <= begin:
                break
            begin = trimmed


def remove_trimmed(
    journal: CatalogJournal, warehouse: str, *, grace: timedelta = GRACE, dry_run: bool = False
) -> Swept:
    """The first run after a trim notes it, a later one removes: files first, so that none is left without a row. Ids of
    batches go at once.

    :param grace: how long a read may take.
    """
    gone: list[Segment] = []
    for state in journal.partitions():
        partition = journal.partition(state.partition)
        unread = partition.unread(grace_ms=round(grace.total_seconds() * 1000), look_only=dry_run)
        gone += unread
        if not dry_run:
            _forget(journal, warehouse, partition, unread)
    return Swept(tuple(path_of(journal.journal, one) for one in gone), sum(one.length for one in gone))


def _forget(journal: CatalogJournal, warehouse: str, partition: CatalogPartition, unread: Sequence[Segment]) -> None:
    for segment in unread:
        remove_segment(warehouse, path_of(journal.journal, segment))
    if unread:
        partition.forget(unread)
    while partition.forget_batches():
        pass


def sweep(
    journal: CatalogJournal,
    warehouse: str,
    *,
    now: datetime,
    min_age: timedelta = MIN_AGE_UNNAMED,
    dry_run: bool = False,
) -> Swept:
    """:param now: an aware time; ages are taken against storage's own times."""
    files: list[pafs.FileInfo] = []
    for state in journal.partitions():
        paths = _unnamed(journal, warehouse, state)
        files += [info for info in _infos(warehouse, paths) if info.mtime is not None and now - info.mtime >= min_age]
    if not dry_run:
        for info in files:
            remove_segment(warehouse, info.path)
    return Swept(tuple(info.path for info in files), sum(info.size or 0 for info in files))


def _unnamed(journal: CatalogJournal, warehouse: str, state: PartitionState) -> list[str]:
    """Files that no row names, and that may go (``unnamed_may_go``).

    The catalog is asked after the epochs were known as finished: its rows of these are final.
    """
    present = list_segments(warehouse, journal.journal, state.partition)
    if any(epoch > state.lease.epoch for epoch, _number in present):
        return []  # The catalog is behind: these files may be all that is left of what was acknowledged.
    finished = [one for one in present if unnamed_may_go(state, *one)]
    named = journal.names(state.partition) if finished else frozenset()
    return [path_of(journal.journal, _segment(state.partition, *one)) for one in finished if one not in named]


def _segment(partition: int, epoch: int, number: int) -> Segment:
    return Segment(partition, epoch, number, 0, 0, 0, 0, 0)


def _infos(warehouse: str, paths: list[str]) -> list[pafs.FileInfo]:
    """Of those that are still there."""
    found = open_filesystem(warehouse).get_file_info(paths) if paths else []
    return [info for info in found if info.type == pafs.FileType.File]
