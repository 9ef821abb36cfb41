"""Heals a catalog that was restored from an older copy: puts back the ticks that the collections still know.

Every commit of ours has the number, range and time of its tick. Ticks that are put back are pending, and marked as
repaired: the next app finishes them in order. A collection that is past such a tick counts as done. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, TableRow, TickRow
from airflow_provider_mzshare.control.catalog.log.repairs import insert_repaired_tick, remove_pending_tick
from airflow_provider_mzshare.control.catalog.objects.items import SourceItem, clear_stall, list_sources
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import SourceState, Tick
from airflow_provider_mzshare.errors import LogConflict
from airflow_provider_mzshare.storage.collections.audit import transactions
from airflow_provider_mzshare.storage.collections.collection import Collection, collection_exists

REASON = "catalog_behind"


@dataclass(frozen=True)
class Repaired:
    """What was done for one source. ``ticks`` were put back; ``removed`` were minted in their place, unwritten."""

    source: str
    ticks: tuple[int, ...]
    removed: tuple[int, ...]
    resumed: bool


@dataclass(frozen=True, order=True)
class Remembered:
    """A tick as the log of a collection has it."""

    mz_timestamp: int
    number: int
    lower: Position
    upper: Position


def repair_catalog(catalog: Catalog, warehouse: str) -> list[Repaired]:
    """Repair every source that stopped as ``catalog_behind``, and others whose collections hold ticks it has not."""
    with catalog.read() as session:
        sources = list_sources(session)
    repaired = (_repair_source(catalog, warehouse, source) for source in sources)
    return [one for one in repaired if one.ticks or one.removed or one.resumed]


def _repair_source(catalog: Catalog, warehouse: str, source: SourceItem) -> Repaired:
    with catalog.read() as session:
        collections = _collections(session, source.id)
    remembered = set(_remembered(warehouse, collections))
    with catalog.locked(source.id) as (session, state):
        known = set(session.scalars(select(TickRow.mz_timestamp).where(TickRow.source_id == source.id)))
        lost = sorted(tick for tick in remembered if tick.mz_timestamp not in known)
        held = {tick.mz_timestamp for tick in remembered}
        removed = _remove_unwritten(session, state, held) if lost else ()
        put_back = [_put_back(session, source.id, tick) for tick in _completed(state, removed, lost)]
        resumed = clear_stall(session, source.id, expect=REASON)
    return Repaired(source.display, tuple(tick.number for tick in put_back), removed, resumed)


def _collections(session: Session, source_id: ItemId) -> list[CollectionId]:
    query = (
        select(CollectionRow.id)
        .join(TableRow, TableRow.id == CollectionRow.table_id)
        .where(TableRow.source_id == source_id, TableRow.status != "dropped")
    )
    return list(session.scalars(query))


def _remembered(warehouse: str, collections: Iterable[CollectionId]) -> Iterator[Remembered]:
    for collection_id in collections:
        if not collection_exists(warehouse, collection_id):
            continue  # never written: its log has no ticks
        for commit in transactions(Collection.open(warehouse, collection_id)):
            noted = commit.metadata
            yield Remembered(
                commit.mz_timestamp,
                int(noted["mz_tick"]),
                # Of a backfill's group, the log has the last tick: this is the tick that the collection holds.
                Position.from_json(noted.get("mz_last_lower", noted["mz_lower"])),
                Position.from_json(noted["mz_upper"]),
            )


def _remove_unwritten(session: Session, state: SourceState, held: set[int]) -> tuple[int, ...]:
    """Remove ticks that were minted after the restore and that no collection holds: no rows are lost."""
    removed = []
    for tick in reversed(state.pending):
        if tick.mz_timestamp in held:
            break
        remove_pending_tick(session, state.source_id, tick.number)
        removed.append(tick.number)
    return tuple(removed)


def _completed(state: SourceState, removed: tuple[int, ...], lost: list[Remembered]) -> Iterator[Remembered]:
    """The lost ticks, and the ticks between them that gave no rows to any collection."""
    kept = [tick for tick in state.pending if tick.number not in removed]
    last: Tick | None = kept[-1] if kept else state.last
    number, upper = (last.number, last.upper) if last else (0, state.start)
    for tick in lost:
        if tick.number <= number or not upper <= tick.lower:
            raise LogConflict(
                f"the log ends with tick {number} at {upper}, but a collection holds tick {tick.number} from "
                f"{tick.lower}: they contradict each other"
            )
        for missing in range(number + 1, tick.number):
            before = tick.mz_timestamp - (tick.number - missing)
            yield Remembered(before, missing, upper, tick.lower)
            upper = tick.lower
        yield tick
        number, upper = tick.number, tick.upper


def _put_back(session: Session, source_id: ItemId, tick: Remembered) -> Tick:
    return insert_repaired_tick(session, source_id, tick.number, tick.lower, tick.upper, tick.mz_timestamp)
