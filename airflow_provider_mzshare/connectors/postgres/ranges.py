"""Finds the messages that hold a range of positions, by the catalog's segments and their blocks' headers."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_mzshare.connectors.announced import BATCHES_AHEAD, PAGE
from airflow_provider_mzshare.connectors.postgres.lsn import show_lsn
from airflow_provider_mzshare.connectors.postgres.place import LANE
from airflow_provider_mzshare.connectors.segments import GONE, part_of, path_in, telling
from airflow_provider_mzshare.core.journal.positions import Slice, slices
from airflow_provider_mzshare.core.journal.state import Segment
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.journal.parts import Part
from airflow_provider_mzshare.journal.positions import Mark, marks, offset_of

PARTITION = 0
_KEPT = 256
_SPREAD = 16
"""So many boundaries about are told for the records of one batch."""


class Ranges:
    """:param root: the warehouse that the journal's files are in."""

    def __init__(self, store: JournalStore, root: str) -> None:
        self._store, self._root = store, root
        self._offsets: dict[tuple[str, int], int] = {}
        """What was looked up last: where a tick ends, the next one begins."""
        self._marks: dict[str, tuple[int, int, list[Mark]]] = {}
        """By file: how long it was, from where on it was looked at, and what was found."""

    def parts(self, lower: Position, upper: Position) -> list[Part]:
        """All of ``[lower, upper)``. Raises if the journal does not have all of it."""
        first, last = lower[LANE], upper[LANE]
        if first >= last:
            return []
        check_reach(self._store, last)
        check_begin(self._store, first)
        return self.of(slices(self._store.positioned(PARTITION, first, last), first, last))

    def of(self, found: list[Slice]) -> list[Part]:
        ends = [(self.offset(one.segment, one.lower), self.offset(one.segment, one.upper)) for one in found]
        parts = [(one.segment, *between) for one, between in zip(found, ends, strict=True)]
        return [part_of(self._root, self._store.journal, *part) for part in parts if part[1] < part[2]]

    def offset(self, segment: Segment, position: int) -> int:
        """Of the first message at or beyond a position that is no greater than the last boundary."""
        if segment.low is None or position <= segment.low:
            return segment.first
        path = path_in(self._root, self._store.journal, segment)
        known = self._offsets.get((path, position))
        if known is None:
            with telling():
                found = offset_of(path, segment.first, segment.length, position)
            known = segment.end if found is None else found
            while len(self._offsets) >= _KEPT:
                self._offsets.pop(next(iter(self._offsets)))
            self._offsets[path, position] = known
        return known

    def marks(self, one: Slice) -> list[Mark]:
        """The boundaries in it beyond its lower end, as its blocks tell them."""
        path, length = path_in(self._root, self._store.journal, one.segment), one.segment.length
        known = self._marks.get(path)
        if known is None or known[0] != length or known[1] > one.lower:
            with telling():
                known = length, one.lower, marks(path, one.segment.first, length, one.lower)
            while len(self._marks) >= _KEPT:
                self._marks.pop(next(iter(self._marks)))
            self._marks[path] = known
        return [mark for mark in known[2] if one.lower < mark.position <= one.upper]


def boundary_of(store: JournalStore) -> int | None:
    """The last one that is announced."""
    return next((state.segment.boundary for state in store.partitions() if state.segment is not None), None)


def oldest_of(store: JournalStore) -> int | None:
    """The position of its first message, if there is one."""
    begin = next((state.begin for state in store.partitions()), 0)
    found = store.segments(PARTITION, begin, begin + 1, limit=1)
    return found[0].low if found else None


def check_reach(store: JournalStore, upper: int) -> None:
    """Raise if changes were read that the journal does not know."""
    reached = boundary_of(store)
    if reached is not None and reached < upper:
        raise UpstreamChanged(
            "journal_behind",
            f"changes up to {show_lsn(upper)} were read, but the catalog knows only those up to {show_lsn(reached)}: "
            "it was restored from an old copy",
            hint="restore a newer backup of the catalog; or DROP SOURCE … CASCADE and create it again",
        )


def check_begin(store: JournalStore, lower: int) -> None:
    """Raise unless all from a position on is there: nothing was removed, or what is left begins below it."""
    if next((state.begin for state in store.partitions()), 0):
        oldest = oldest_of(store)
        if oldest is None or oldest >= lower:
            raise UpstreamChanged(
                GONE, f"the next change to read is at {show_lsn(lower)}, and the journal does not have it any more"
            )


class Boundaries:
    """Where a stream's batches may end, and where their messages are. :param max_records: of a batch, about."""

    def __init__(self, store: JournalStore, ranges: Ranges, max_records: int) -> None:
        self._store, self._ranges = store, ranges
        self._ahead, self._apart = max_records * BATCHES_AHEAD, max(1, max_records // _SPREAD)
        self._marks: dict[int, int] = {}
        """All that were told, from where the stream is on: it may be about to use any of them."""
        self._seen: tuple[int, int] | None = None
        self._parts: list[Part] = []

    def __call__(self, low: Position) -> dict[str, object]:
        lower, reached = low[LANE], boundary_of(self._store)
        if reached is not None and reached > lower and self._seen != (lower, reached):
            self._look(lower, reached)
            self._seen = lower, reached
        told = sorted((position, offset) for position, offset in self._marks.items() if position >= lower)
        self._marks = dict(told)
        return {"marks": told, "parts": [part.to_plain() for part in self._parts]}

    def _look(self, lower: int, reached: int) -> None:
        found: list[Slice] = []
        told: list[Mark] = []
        messages, upper = 0, reached
        for one in self._slices(lower, reached):
            found.append(one)
            told += self._ranges.marks(one)
            messages += one.segment.messages
            if messages > self._ahead and told:
                upper = told[-1].position
                break
        begin = self._begin(lower, reached)
        if upper == reached:
            last = found[-1] if found else None
            told.append(Mark(reached, self._ranges.offset(last.segment, last.upper) if last else begin))
        self._marks.setdefault(lower, begin)
        self._add(begin, told)
        furthest = max(self._marks.values())
        self._parts = [part for part in self._ranges.of(found) if part.extent.lower < furthest]

    def _slices(self, lower: int, reached: int) -> Iterator[Slice]:
        """A page after the other. What comes after a page is not known: it counts as far as its last segment begins."""
        at, limit = lower, PAGE
        while at < reached:
            rows = self._store.positioned(PARTITION, at, reached, limit=limit)
            lows = [row.low for row in rows if row.low is not None]
            upper = min(reached, lows[-1]) if len(rows) == limit and lows else reached
            if upper == at:
                limit *= 4  # One transaction is in all of them.
                continue
            yield from slices(rows, at, upper)
            at = upper

    def _begin(self, lower: int, reached: int) -> int:
        """The offset below which all is below ``lower``, and that what is beyond lies behind."""
        rows = [row for row in self._store.positioned(PARTITION, lower, reached, limit=PAGE) if row.low is not None]
        beyond = next((row for row in rows if (row.low or 0) >= lower), None)
        below = next((row for row in reversed(rows) if (row.low or 0) < lower), None)
        offset = None if below is None else self._ranges.offset(below, lower)
        if beyond is not None and (offset is None or below is None or offset == below.end):
            return beyond.first
        return offset or 0

    def _add(self, begin: int, told: list[Mark]) -> None:
        """Not all of many, and always one: a transaction may be larger than a batch."""
        last = begin
        for number, mark in enumerate(told):
            is_last = number == len(told) - 1
            if is_last or mark.offset - last >= self._apart or told[number + 1].offset - last > self._apart:
                self._marks.setdefault(*mark)
                last = mark.offset
