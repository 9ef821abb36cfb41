"""How far all live tables are written: one query for a whole catalog. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import ItemRow, TableRow
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position


@dataclass(frozen=True)
class TableUpper:
    """What is committed of a table: all rows up to the tick ``tick`` of time ``mz_timestamp``."""

    table_id: ItemId
    table: str
    generation: int
    tick: int
    mz_timestamp: int
    position: Position
    rows: int


def table_uppers(session: Session) -> Mapping[Name, TableUpper]:
    """By name. A table that is still being brought up has not arrived, so it is left out."""
    query = (
        select(
            ItemRow.schema_name,
            ItemRow.name,
            TableRow.id,
            TableRow.generation,
            TableRow.next_tick,
            TableRow.upper,
            TableRow.position,
            TableRow.rows,
        )
        .select_from(TableRow)
        .join(ItemRow, known_as())
        .where(TableRow.status == "live", TableRow.upper > 0)
    )
    return {
        (row.schema_name, row.name): TableUpper(
            table_id=row.id,
            table=display_name((row.schema_name, row.name)),
            generation=row.generation,
            tick=row.next_tick - 1,
            mz_timestamp=row.upper - 1,
            position=row.position,
            rows=row.rows,
        )
        for row in session.execute(query)
    }
