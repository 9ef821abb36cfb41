"""Damaged collections: whoever finds a damage marks the collection, until a check finds that it is whole again."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ForeignKey, Index, ScalarSelect, Text, delete, func, insert, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.base import Base
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, TableRow
from airflow_provider_mzshare.core.ids import CollectionId, ItemId

_NO_SYNC = {"synchronize_session": False}


class DamageRow(Base):
    """What is wrong with a collection, as it was found last. Rows about generations that were replaced are ignored."""

    __tablename__ = "damages"

    collection_id: Mapped[CollectionId] = mapped_column(Text, ForeignKey("collections.id"), primary_key=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"))
    generation: Mapped[int]
    found_at: Mapped[int]
    problem: Mapped[str]

    __table_args__ = (Index("damages_table", "table_id"),)


def current_damage() -> ScalarSelect[str | None]:
    """The damage of a table's current generation, to be selected with its row. The data's comes before the errors'."""
    mine = (DamageRow.table_id == TableRow.id) & (DamageRow.generation == TableRow.generation)
    return select(func.min(DamageRow.problem)).where(mine).correlate(TableRow).scalar_subquery()


def note_damage(session: Session, collection_id: CollectionId, problem: str) -> None:
    """A damage that is known already is not written again, however often a read fails."""
    known = session.scalar(select(DamageRow.problem).where(DamageRow.collection_id == collection_id))
    if known == problem:
        return
    whose = select(CollectionRow.table_id, CollectionRow.generation).where(CollectionRow.id == collection_id)
    table_id, generation = session.execute(whose).one()
    told = {"found_at": wall_ms(), "problem": problem}
    if known is None:
        place = {"collection_id": collection_id, "table_id": table_id, "generation": generation}
        session.execute(insert(DamageRow), [{**place, **told}])
    else:
        same = update(DamageRow).where(DamageRow.collection_id == collection_id).values(**told)
        session.execute(same, execution_options=_NO_SYNC)
    touch(session, table_id)


def clear_damage(session: Session, collection_ids: Collection[CollectionId]) -> None:
    """These collections were checked and are whole."""
    gone = DamageRow.collection_id.in_(collection_ids)
    tables = session.scalars(select(DamageRow.table_id).where(gone)).all()
    if tables:
        session.execute(delete(DamageRow).where(gone), execution_options=_NO_SYNC)
        for table_id in set(tables):
            touch(session, table_id)
