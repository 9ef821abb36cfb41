"""The specs of tables in all their versions: which is valid at a tick, and how one is changed.

A table's row has the newest one, which is its definition. The caller owns the transaction and the lock of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, ScalarSelect, func, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import SpecRow, TableRow, TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import parse_table_spec
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog import spec_versions
from airflow_provider_mzshare.core.ticklog.state import SourceState

FIRST_VERSION = 1


@dataclass(frozen=True)
class SpecVersion:
    version: int
    first_tick: int
    spec: TableSpec


# ── read ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def valid_at(tick: int | ColumnElement[int]) -> ColumnElement[bool]:
    """A join condition: the row of a table's specs that is valid at a tick, as ``spec_versions.version_at`` says."""
    other = SpecRow.__table__.alias()
    newest = (
        select(func.max(other.c.version))
        .where(other.c.table_id == TableRow.id, other.c.first_tick <= tick)
        .correlate(TableRow)
    )
    return (SpecRow.table_id == TableRow.id) & (SpecRow.version == newest.scalar_subquery())


def open_tick(source_id: ItemId) -> ColumnElement[int]:
    """The number of the tick that is pending, else of the next one."""
    committed = select(func.max(TickRow.number)).where(TickRow.source_id == source_id, TickRow.committed)
    return func.coalesce(committed.scalar_subquery(), 0) + 1


def valid_spec(stored: str, newest: str) -> TableSpec:
    """A version for writers and readers: its own columns, with the newest version's handling of rows and errors."""
    return parse_table_spec(stored).handled_as(parse_table_spec(newest))


def spec_at(session: Session, table_id: ItemId, tick: int) -> TableSpec:
    query = select(SpecRow.spec, TableRow.spec).join(SpecRow, valid_at(tick)).where(TableRow.id == table_id)
    return valid_spec(*session.execute(query).one())


def versions_of(session: Session, table_id: ItemId) -> Sequence[SpecVersion]:
    """Oldest first."""
    query = select(SpecRow).where(SpecRow.table_id == table_id).order_by(SpecRow.version)
    return [SpecVersion(row.version, row.first_tick, parse_table_spec(row.spec)) for row in session.scalars(query)]


def first_ticks(session: Session, table_ids: Collection[ItemId]) -> dict[ItemId, list[int]]:
    """Of the versions of each table, oldest first."""
    query = select(SpecRow.table_id, SpecRow.first_tick).where(SpecRow.table_id.in_(table_ids))
    found: dict[ItemId, list[int]] = {}
    for table_id, first_tick in session.execute(query.order_by(SpecRow.table_id, SpecRow.version)):
        found.setdefault(table_id, []).append(first_tick)
    return found


# ── write ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def first_row(table_id: ItemId, spec: TableSpec) -> dict[str, object]:
    """The row of a new table's spec."""
    first = {"version": FIRST_VERSION, "first_tick": spec_versions.FIRST_TICK}
    return {"table_id": table_id, **first, "spec": spec.model_dump_json()}


def change_spec(session: Session, state: SourceState, table_id: ItemId, spec: TableSpec) -> None:
    """A new version, valid from the next tick that is minted."""
    text = spec.model_dump_json()
    present = update(TableRow).where(TableRow.id == table_id, TableRow.status != "dropped")
    change(session, present.values(spec=text, spec_version=TableRow.spec_version + 1), 1, f"table {table_id}")
    first_tick = spec_versions.first_tick_of_change(state)
    session.execute(
        insert(SpecRow).values(table_id=table_id, version=_newest(table_id), first_tick=first_tick, spec=text)
    )


def restate_spec(session: Session, table_id: ItemId, spec: TableSpec) -> None:
    """Write the newest version in another form. Its rows are the same, so it stays the same version for every tick."""
    text = spec.model_dump_json()
    same = update(SpecRow).where(SpecRow.table_id == table_id, SpecRow.version == _newest(table_id))
    for row in (same, update(TableRow).where(TableRow.id == table_id)):
        change(session, row.values(spec=text), 1, f"table {table_id}")


def _newest(table_id: ItemId) -> ScalarSelect[int]:
    return select(TableRow.spec_version).where(TableRow.id == table_id).scalar_subquery()
