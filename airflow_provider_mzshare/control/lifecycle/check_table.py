"""Is a table whole? Compares its collections with their logs and with the catalog, and marks those that are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from deltalake.exceptions import DeltaError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.damages import clear_damage, note_damage
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, CommitRow
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item, source_place
from airflow_provider_mzshare.control.catalog.objects.table_specs import versions_of
from airflow_provider_mzshare.control.catalog.queries.reads import EMPTY_VERSION, ReadPoint, version_at
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import MzShareError, NotReadable
from airflow_provider_mzshare.storage.collections.check import Checked, Known, check_collection
from airflow_provider_mzshare.storage.collections.collection import collection_exists
from airflow_provider_mzshare.storage.collections.damage import Damage, brief, in_collection, told
from airflow_provider_mzshare.storage.collections.faults import StorageFault, check_mounted, warehouse_fault
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS
from airflow_provider_mzshare.storage.table_columns import all_columns


class DamagedTable(NotReadable):
    """Part of a table is gone or cannot be read. ``table`` is written as in SQL."""

    def __init__(self, table: str, damages: Sequence[Damage]) -> None:
        self.table, self.damages = table, tuple(damages)
        super().__init__(f"table {table} is damaged: {told(self.damages)}", hint=hints.resnapshot(table))


@dataclass(frozen=True)
class TableCheck:
    """What was looked at of a table's current generation, and what was found."""

    table: str
    deep: bool
    entries: int
    files: int
    bytes: int
    damages: tuple[Damage, ...]

    @property
    def is_whole(self) -> bool:
        return not self.damages


def check_table(catalog: Catalog, warehouse: str, table: TableItem, *, deep: bool = False) -> TableCheck:
    """Check both collections of the current generation. Mark those that are damaged, and clear the mark of the others.

    What looks damaged is checked twice: maintenance may have removed files that were needed a moment before.
    """
    check_mounted(warehouse)
    found = _look(catalog, warehouse, table, deep)
    if any(one.damages for one in found):
        again = {one.collection_id: one.damages for one in _look(catalog, warehouse, table, deep)}
        found = [replace(one, damages=tuple(d for d in one.damages if d in again[one.collection_id])) for one in found]
    with catalog.write() as session:
        clear_damage(session, [one.collection_id for one in found if not one.damages])
        for one in found:
            if one.damages:
                note_damage(session, one.collection_id, told(in_collection(one.collection_id, one.damages)))
    return TableCheck(
        table=table.display,
        deep=deep,
        entries=sum(one.entries for one in found),
        files=sum(one.files for one in found),
        bytes=sum(one.bytes for one in found),
        damages=tuple(damage for one in found for damage in in_collection(one.collection_id, one.damages)),
    )


def explain(catalog: Catalog, warehouse: str, points: Iterable[ReadPoint], error: Exception) -> Exception:
    """Why a read failed: a fault of the storage; damage, which is marked; or what the error itself says.

    A file may be missing because maintenance removed it during the read. If the catalog no longer answers for that
    point, it is no damage.
    """
    if fault := warehouse_fault(warehouse, error):
        return fault
    if _is_about_files(error):
        try:
            check_mounted(warehouse)
        except StorageFault as away:
            # The warehouse is not mounted, which says nothing about any table: none is marked.
            return NotReadable(away.message, hint=away.hint)
        for point in points:
            if damages := _damaged(catalog, warehouse, point):
                return DamagedTable(point.name, damages)
    return error if isinstance(error, MzShareError) else NotReadable(f"it cannot be read: {brief(error)}")


def _is_about_files(error: BaseException | None) -> bool:
    """Whether the error may come from files. A Spark error that names another condition comes from the query."""
    while error is not None:
        condition = getattr(error, "getCondition", None)
        if isinstance(error, (OSError, DeltaError, pa.ArrowException)) or type(error).__module__.startswith("py4j"):
            return True
        if condition is not None:
            return (condition() or "FAILED_READ_FILE").startswith(("FAILED_READ_FILE", "DELTA_"))
        error = error.__cause__
    return False


def _damaged(catalog: Catalog, warehouse: str, point: ReadPoint) -> list[Damage]:
    found: list[Damage] = []
    for collection_id, version in ((point.data, point.data_version), (point.errors, point.errors_version)):
        if version == EMPTY_VERSION and not collection_exists(warehouse, collection_id):
            continue
        look = partial(check_collection, warehouse, collection_id, to=version)
        damages = in_collection(collection_id, look().damages or look(deep=True).damages)
        if damages and _is_needed(catalog, point):
            found += damages
            # A reader without the right to write to the catalog still reports the damage.
            with suppress(MzShareError, SQLAlchemyError), catalog.write() as session:
                note_damage(session, collection_id, told(damages))
    return found


def _is_needed(catalog: Catalog, point: ReadPoint) -> bool:
    with catalog.read() as session:
        table = get_table_item(session, point.table_id)
    return table.status != "dropped" and table.since <= point.mz_timestamp


def _look(catalog: Catalog, warehouse: str, table: TableItem, deep: bool) -> list[Checked]:
    with catalog.read() as session:
        known = dict(_known(session, get_table_item(session, table.id)))
    found: list[Checked] = []
    for collection_id, one in known.items():
        # A table that is a member but has got no rows yet may have no folders.
        is_there = bool(one.ticks) or collection_exists(warehouse, collection_id)
        found.append(check_collection(warehouse, collection_id, one, deep=deep) if is_there else Checked(collection_id))
    return found


def _known(session: Session, table: TableItem) -> Iterator[tuple[CollectionId, Known]]:
    mine = (CollectionRow.table_id == table.id) & (CollectionRow.generation == table.generation)
    own = select(CollectionRow.id, CollectionRow.role, CollectionRow.hash_version).where(mine)
    for collection_id, role, hash_version in session.execute(own.order_by(CollectionRow.role)):
        columns = select(CommitRow.version, CommitRow.mz_timestamp, CommitRow.rows, CommitRow.hash)
        commits = session.execute(columns.where(CommitRow.collection_id == collection_id)).all()
        yield (
            collection_id,
            Known(
                ticks={commit.version: commit.mz_timestamp for commit in commits},
                rows=sum(commit.rows for commit in commits),
                hash=sum(int(commit.hash, 16) for commit in commits) % MODULUS,
                hash_version=hash_version,
                first=version_at(session, collection_id, table.since),
                columns=_columns(session, table) if role == "data" else (),
            ),
        )


def _columns(session: Session, table: TableItem) -> tuple[tuple[int, frozenset[str]], ...]:
    """The columns of the table's rows, from which tick on; empty if they never changed."""
    place, versions = source_place(session, table.source_id), versions_of(session, table.id)
    found = [(v.first_tick, frozenset(c.name for c in all_columns(v.spec, place))) for v in versions]
    return tuple(found) if len({names for _, names in found}) > 1 else ()
