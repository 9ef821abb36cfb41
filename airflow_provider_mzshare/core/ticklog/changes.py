"""The change stream of a table: what its states at two times differ by, and where it can be cut.

A table at time ``t`` is a state; the changes of a time lead from the state just before it to the state at it. So a
stream is cut before a time ``c``: the state at ``c - 1`` is on one side, the changes from ``c`` on are on the other.
Snapshots, the first time of a stream and the time up to which it goes are all such cuts, and the same rule says which
can be had: no state is stored for the times inside a commit that wrote several ticks together, nor for those between
the end of a generation and the tick that put another in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from airflow_provider_mzshare.errors import NotReadable


@dataclass(frozen=True)
class Gap:
    """Times without a state: every cut ``first < c <= last`` is inside. The nearest that are not are named."""

    first: int
    last: int
    why: str

    @property
    def nearest(self) -> tuple[int, int]:
        return self.first, self.last + 1

    def holds(self, cut: int) -> bool:
        return self.first < cut <= self.last


def group_gap(first_timestamp: int, mz_timestamp: int) -> Gap | None:
    """Of one commit. A ``first_timestamp`` of 0 is unknown: such a commit counts as one tick, as reads have it."""
    if not 0 < first_timestamp < mz_timestamp:
        return None
    return Gap(
        first_timestamp,
        mz_timestamp,
        f"the ticks from {first_timestamp} to {mz_timestamp} were written together, by the backfill that resumed it",
    )


@dataclass(frozen=True)
class Commit:
    """One commit of a collection: its version, the time it stands for, and that of the first tick that it holds."""

    version: int
    mz_timestamp: int
    first_timestamp: int = 0


def together(commits: Iterable[Commit]) -> Iterator[tuple[Commit, ...]]:
    """The commits in their order, those together between which there is no state: what they did counts as of the last.

    A keyed table that is healed from a compacted upstream gets groups each of which reaches back to the stall.
    """
    run: list[Commit] = []
    for commit in commits:
        if run and not 0 < commit.first_timestamp <= run[-1].mz_timestamp:
            yield tuple(run)
            run = []
        run.append(commit)
    if run:
        yield tuple(run)


@dataclass(frozen=True)
class Swapped:
    """A generation that was replaced by the tick at ``mz_timestamp``.

    :param upper: the first time that it does not answer for: that of the first tick that it has not got.
    """

    generation: int
    mz_timestamp: int
    upper: int

    @property
    def gap(self) -> Gap | None:
        """Times from the old generation's upper to before the swap have no state."""
        if self.upper >= self.mz_timestamp:
            return None
        return Gap(
            self.upper,
            self.mz_timestamp,
            f"it stopped at {self.upper - 1}, and a new generation replaced it at {self.mz_timestamp}",
        )


@dataclass(frozen=True)
class Piece:
    """What one generation's commits did at the times ``lower <= time < upper``."""

    generation: int
    lower: int
    upper: int


@dataclass(frozen=True)
class Turn:
    """The tick of a swap: the new generation at its time, less the old one as it was last."""

    mz_timestamp: int
    old: int
    old_time: int
    new: int


def stretches(lower: int, upper: int, swaps: Iterable[Swapped], generation: int) -> Sequence[Piece | Turn]:
    """What a stream with the times ``lower <= time < upper`` is made of, in order.

    :param swaps: of the table; those that are long past may be missing.
    :param generation: the current one.
    """
    parts: list[Piece | Turn] = []
    coming = sorted((swap for swap in swaps if swap.mz_timestamp >= lower), key=lambda swap: swap.mz_timestamp)
    for number, swap in enumerate(coming):
        if lower < min(swap.mz_timestamp, upper):
            parts.append(Piece(swap.generation, lower, min(swap.mz_timestamp, upper)))
        if swap.mz_timestamp >= upper:
            return parts
        new = coming[number + 1].generation if number + 1 < len(coming) else generation
        parts.append(Turn(swap.mz_timestamp, swap.generation, swap.upper - 1, new))
        lower = swap.mz_timestamp + 1
    if lower < upper:
        parts.append(Piece(generation, lower, upper))
    return parts


@dataclass(frozen=True)
class Bounds:
    """What a caller asks for, and what the table has. All times are milliseconds.

    :param as_of: with a snapshot, the time of it; without, the first time of the stream.
    :param given: whether the caller named that time. Otherwise it is the newest for a snapshot, or the first there is.
    :param heal: the next step, if the table has stalled: nothing more becomes final by itself.
    """

    table: str
    as_of: int
    up_to: int
    snapshot: bool
    since: int
    upper: int
    given: bool = True
    heal: str = ""

    @property
    def lower(self) -> int:
        """The first time that changes are wanted of: also the first cut."""
        return self.as_of + 1 if self.snapshot else self.as_of

    @property
    def first(self) -> int:
        """The state at ``since`` is the oldest there is: what its own changes lead from is gone."""
        return self.since if self.snapshot else self.since + 1

    @property
    def what(self) -> str:
        return "a snapshot" if self.snapshot else "changes without a snapshot"


def check_bounds(bounds: Bounds, gaps: Iterable[Gap]) -> None:
    """Raise NotReadable unless all of the stream can be had. It is never answered in part.

    :param gaps: of the table, at least those that hold one of the two cuts.
    """
    check_range(bounds)
    known = list(gaps)
    _check_cut(bounds, known, bounds.lower, "begin at", int(bounds.snapshot))
    check_end(bounds, known)


def check_range(bounds: Bounds) -> None:
    """Raise NotReadable unless the stream is within what the table has, whatever gaps that has."""
    _check_begin(bounds)
    if bounds.up_to > bounds.upper:
        raise NotReadable(
            f"{bounds.table} has no changes up to {bounds.up_to} yet: what is before {bounds.upper} is final",
            hint=f"ask for changes up to {bounds.upper}, or {bounds.heal or 'follow the table'}",
        )
    if bounds.up_to < bounds.lower:
        raise _backwards(bounds)


def _check_begin(bounds: Bounds) -> None:
    table, as_of, upper = bounds.table, bounds.as_of, bounds.upper
    if as_of < bounds.first:
        raise NotReadable(
            f"{table}: {bounds.what} cannot begin at {as_of}: it can be read since {bounds.since}",
            hint=f"the first time of {bounds.what} is {bounds.first}",
        )
    if bounds.snapshot and as_of >= upper:
        wrong = f"{table} has no snapshot as of {as_of}, which is not final yet: its last time is {upper - 1}"
        raise NotReadable(wrong, hint=bounds.heal)
    if as_of > upper:
        raise NotReadable(
            f"{table}: changes cannot begin at {as_of} yet: what is before {upper} is final",
            hint=f"ask for changes from {upper} on, or {bounds.heal or 'follow the table'}",
        )


def _backwards(bounds: Bounds) -> NotReadable:
    """It ends before it begins. Nobody need have said where it begins."""
    first, last, hint = bounds.first, bounds.up_to - 1, ""
    if bounds.given:
        begins = f"the snapshot as of {bounds.as_of}" if bounds.snapshot else f"the changes from {bounds.as_of} on"
    elif bounds.snapshot:
        begins = f"the newest snapshot, as of {bounds.as_of}"
        hint = f"also say the time of the snapshot, from {first} to {last}" if first <= last else ""
    else:
        begins = f"the first changes that there are, from {bounds.as_of} on"
    return NotReadable(f"{bounds.table}: a stream up to {bounds.up_to} ends before it begins, with {begins}", hint=hint)


def check_end(bounds: Bounds, gaps: Sequence[Gap]) -> None:
    """Raise NotReadable unless the stream can end there."""
    _check_cut(bounds, gaps, bounds.up_to, "end at", 0)


def _check_cut(bounds: Bounds, gaps: Sequence[Gap], cut: int, name: str, shift: int) -> None:
    gap = next((gap for gap in gaps if gap.holds(cut)), None)
    if gap is not None:
        near = [time - shift for time in nearest_cuts(cut, gaps) if bounds.since < time <= bounds.upper]
        raise NotReadable(
            f"{bounds.table}: the stream cannot {name} {cut - shift}: {gap.why}",
            hint=f"the nearest time{'s are' if len(near) > 1 else ' is'} {' and '.join(map(str, near))}",
        )


def nearest_cuts(cut: int, gaps: Iterable[Gap]) -> tuple[int, int]:
    """The last cut at or before this one, and the first at or after it, that no gap holds."""
    before = after = cut
    known = list(gaps)
    while gap := next((gap for gap in known if gap.holds(before)), None):
        before = gap.first
    while gap := next((gap for gap in known if gap.holds(after)), None):
        after = gap.last + 1
    return before, after
