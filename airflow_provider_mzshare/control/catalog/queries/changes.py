"""Where the change stream of a table is: the cuts that it can have, the commits that made it. Opens no collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, CommitRow, SwapRow, TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item, source_place
from airflow_provider_mzshare.control.catalog.objects.table_specs import spec_at
from airflow_provider_mzshare.control.catalog.queries.reads import version_at
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.changes import (
    Commit,
    Gap,
    Piece,
    Swapped,
    Turn,
    group_gap,
    nearest_cuts,
    stretches,
    together,
)
from airflow_provider_mzshare.errors import NotReadable

PAGE = 10_000
"""So many commits are looked up at once."""


@dataclass(frozen=True)
class Stored:
    """One generation's rows. ``path`` is relative to the warehouse."""

    collection_id: CollectionId
    path: str


@dataclass(frozen=True)
class StateAt:
    """A state of the table, in the collection and at the version that answer for it."""

    stored: Stored
    version: int


@dataclass(frozen=True)
class TickChanges:
    """Commits that count together, as of the last one's time."""

    mz_timestamp: int
    stored: Stored
    commits: tuple[Commit, ...]


@dataclass(frozen=True)
class TurnChanges:
    """What the tick of a swap does: it puts one state in the place of another."""

    mz_timestamp: int
    old: StateAt
    new: StateAt


@dataclass(frozen=True)
class Page:
    """A part of a stream: what happened before ``upper``, in order.

    :param generation: the one that answers for the time before ``upper``.
    """

    parts: Sequence[TickChanges | TurnChanges]
    upper: int
    generation: int


def columns_at(session: Session, table: TableItem, time: int) -> tuple[TableSpec, Place]:
    """The definition that the newest tick at or before ``time`` has."""
    older = select(TickRow.number).where(TickRow.source_id == table.source_id, TickRow.mz_timestamp <= time)
    # By its time, for which there is an index: a maximum of the numbers would look at every tick that there was.
    number = session.scalar(older.order_by(TickRow.mz_timestamp.desc()).limit(1))
    spec = table.spec if number is None else spec_at(session, table.id, number)
    return spec, source_place(session, table.source_id)


def swaps_of(session: Session, table: TableItem) -> list[Swapped]:
    """Of generations that still answer, oldest first."""
    rows = session.scalars(select(SwapRow).where(SwapRow.table_id == table.id).order_by(SwapRow.mz_timestamp))
    return [Swapped(row.generation, row.mz_timestamp, _answers_until(session, table, row)) for row in rows]


def _answers_until(session: Session, table: TableItem, swap: SwapRow) -> int:
    """The first tick that the old generation has not got, at the latest that of the swap. Until then it stays so."""
    missed = select(func.min(TickRow.mz_timestamp))
    found = session.scalar(missed.where(TickRow.source_id == table.source_id, TickRow.mz_timestamp >= swap.upper))
    return swap.mz_timestamp if found is None else min(found, swap.mz_timestamp)


def gaps_near(session: Session, table: TableItem, cuts: Sequence[int]) -> list[Gap]:
    """The gaps that hold one of the cuts, and those that are in the way to the nearest cuts that none holds."""
    swaps = swaps_of(session, table)
    found: list[Gap] = []
    coming = list(cuts)
    while coming:
        cut = coming.pop()
        new = [gap for gap in _holding(session, table, swaps, cut) if gap not in found]
        found += new
        coming += nearest_cuts(cut, found) if new else ()
    return found


def _holding(session: Session, table: TableItem, swaps: Sequence[Swapped], cut: int) -> Iterator[Gap]:
    yield from (swap.gap for swap in swaps if swap.gap is not None and swap.gap.holds(cut))
    generation = next((swap.generation for swap in swaps if cut <= swap.mz_timestamp), table.generation)
    # The errors too: a table is read as of a time, or is not, with both.
    mine = (CollectionRow.table_id == table.id) & (CollectionRow.generation == generation)
    for collection_id in session.scalars(select(CollectionRow.id).where(mine)).all():
        gap = _group_holding(session, collection_id, cut)
        if gap is not None:
            yield gap


def _group_holding(session: Session, collection_id: CollectionId, cut: int) -> Gap | None:
    """Of all commits that hold the cut, as one: those of a table that was healed may all reach back to its stall."""
    after = select(CommitRow.first_timestamp).where(
        CommitRow.collection_id == collection_id, CommitRow.mz_timestamp >= cut
    )
    first = session.scalar(after.order_by(CommitRow.mz_timestamp).limit(1))
    if first is None or not 0 < first < cut:
        return None
    ends = select(func.min(CommitRow.first_timestamp), func.max(CommitRow.mz_timestamp)).where(
        CommitRow.collection_id == collection_id,
        CommitRow.mz_timestamp >= cut,
        CommitRow.first_timestamp.between(1, cut - 1),
    )
    return group_gap(*session.execute(ends).one())


def generation_at(session: Session, table: TableItem, time: int) -> int:
    """The one that answers for a time that can be read."""
    return next((swap.generation for swap in swaps_of(session, table) if time < swap.mz_timestamp), table.generation)


def state_at(session: Session, table: TableItem, generation: int, time: int) -> StateAt:
    stored = _stored(session, table, generation)
    return StateAt(stored, version_at(session, stored.collection_id, time))


def page_of(session: Session, table_id: ItemId, lower: int, upper: int, *, generation: int, most: int = PAGE) -> Page:
    """What happened at the times ``lower <= time < upper``, or at the first of them.

    :param generation: the one that answered for the time before ``lower``.
    :param most: commits, unless more of them count together.
    """
    table = get_table_item(session, table_id)
    if table.status == "dropped":
        raise NotReadable(f"{table.display} was dropped")
    found: list[TickChanges | TurnChanges] = []
    for stretch in stretches(lower, upper, swaps_of(session, table), table.generation):
        if (stretch.old if isinstance(stretch, Turn) else stretch.generation) != generation:
            raise NotReadable(
                f"{table.display} no longer has the generation that answered before {lower}",
                hint="begin anew, with a snapshot",
            )
        if isinstance(stretch, Turn):
            old = state_at(session, table, stretch.old, stretch.old_time)
            new = state_at(session, table, stretch.new, stretch.mz_timestamp)
            found.append(TurnChanges(stretch.mz_timestamp, old, new))
            generation = stretch.new
            continue
        ticks, more = _ticks(session, _stored(session, table, stretch.generation), stretch, most)
        found += ticks
        if more:
            return Page(found, ticks[-1].mz_timestamp + 1, generation)
    return Page(found, upper, generation)


def _ticks(session: Session, stored: Stored, piece: Piece, most: int) -> tuple[list[TickChanges], bool]:
    """The first commits of a piece, and whether there are more."""
    columns = select(CommitRow.version, CommitRow.mz_timestamp, CommitRow.first_timestamp)
    mine = CommitRow.collection_id == stored.collection_id
    within = (CommitRow.mz_timestamp >= piece.lower) & (CommitRow.mz_timestamp < piece.upper)
    query = columns.where(mine, within).order_by(CommitRow.mz_timestamp).limit(most + 1)
    commits = [Commit(*row) for row in session.execute(query)]
    runs = list(together(commits))
    if len(commits) <= most:
        return [_tick(stored, run) for run in runs], False
    if len(runs) == 1:
        return _ticks(session, stored, piece, most * 2)
    # The last one may go on.
    return [_tick(stored, run) for run in runs[:-1]], True


def _tick(stored: Stored, run: tuple[Commit, ...]) -> TickChanges:
    return TickChanges(run[-1].mz_timestamp, stored, run)


def _stored(session: Session, table: TableItem, generation: int) -> Stored:
    query = select(CollectionRow.id, CollectionRow.path).where(
        CollectionRow.table_id == table.id, CollectionRow.generation == generation, CollectionRow.role == "data"
    )
    return Stored(*session.execute(query).one())
