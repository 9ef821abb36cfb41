"""What the files of a partition tell to whoever is about to write beside them, whatever the catalog says."""

from __future__ import annotations

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import OnDisk, PartitionState, Segment, path_of
from airflow_provider_mzshare.journal.begun import last_begun
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.journal.segment_file import list_segments


def look(root: str, journal: JournalId, state: PartitionState) -> OnDisk:
    """For ``rules.check_files``. Raises OSError.

    :param root: the warehouse. :param state: as the catalog knew it before.
    """
    known = state.lease.epoch
    present = list_segments(root, journal, state.partition, after=known - 1)
    numbers = [number for epoch, number in present if epoch == known]
    greatest = max((epoch for epoch, _number in present), default=0)
    return OnDisk(known, greatest, _begun(root, journal, state, numbers))


def _begun(root: str, journal: JournalId, state: PartitionState, numbers: list[int]) -> int:
    """In the last one that can be read: each begins where the one before it was announced to, or behind that."""
    newest = state.segment if state.segment and state.segment.epoch == state.lease.epoch else None
    for number in reversed(numbers):
        if newest is not None and number < newest.number:
            break
        if newest is not None and number == newest.number:
            # One object is one flush: there is nothing behind what is announced.
            found = last_begun(_place(root, journal, newest), newest.length, newest.end) if local_path(root) else None
        else:
            found = last_begun(
                _place(root, journal, Segment(state.partition, state.lease.epoch, number, 0, 0, 0, 0, 0))
            )
        if found is not None:
            return found
    return 0


def _place(root: str, journal: JournalId, segment: Segment) -> str:
    return f"{root}/{path_of(journal, segment)}"
