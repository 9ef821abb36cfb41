"""What of a journal is still needed, whatever its retention says: decided from the source's log alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

from airflow_provider_mzshare.core.journal.state import PartitionState, Segment
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import SourceState


def needed(state: SourceState) -> Position | None:
    """All from this position on is needed. None: no table needs anything.

    A pending tick may be read again. A backfill, also one that heals, reads from where its tables stand. A
    live table stands where the next tick begins.
    """
    tables = [*state.tables.values(), *state.replacements.values()]
    standing = [table.position.join(table.start) for table in tables if table.status != "dropped"]
    if not standing:
        return None
    pending = [tick.lower for tick in state.pending]
    return reduce(Position.meet, [*pending, *standing])


def may_go(segments: Sequence[Segment], keep_from: int | None, announced_before: int) -> int:
    """The offset up to which whole segments may go: nobody needs them, and all of their messages are old enough.

    :param segments: of one partition, from its begin on, in order.
    :param keep_from: as ``needed`` says of the partition; None: nobody needs any.
    :param announced_before: milliseconds, by the clock of the catalog's database.
    """
    to = 0
    for segment in segments:
        if segment.announced_at >= announced_before or (keep_from is not None and segment.end > keep_from):
            break
        to = segment.end
    return to


def unnamed_may_go(state: PartitionState, epoch: int, number: int) -> bool:
    """May a file go that no row names, by its name?

    The epoch of one that may is finished: nobody announces it any more. What is newer than all that is announced stays,
    because a copy of the catalog that is older may know by it alone that something is missing (``rules.check_files``).
    """
    newest = state.segment
    return epoch < state.lease.epoch and newest is not None and (epoch, number) < (newest.epoch, newest.number)


def may_go_below(segments: Sequence[Segment], keep_from: int | None, announced_before: int) -> int:
    """As ``may_go``, where positions are the upstream's own: what is needed is from such a position on.

    A segment goes once a later one begins below what is needed: then it has nothing of that, and what is left still
    shows that nothing is missing.
    """
    to = 0
    for segment, after in pairwise(segments):
        if segment.announced_at >= announced_before:
            break
        if after.low is not None and (keep_from is None or after.low < keep_from):
            to = segment.end
    return to
