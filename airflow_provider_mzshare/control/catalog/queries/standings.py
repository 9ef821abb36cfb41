"""How far tables are behind the logs of their sources: what a reader gets now. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from airflow_provider_mzshare.control.catalog.database.models import ItemRow, SourceRow, TableRow, TickRow
from airflow_provider_mzshare.control.catalog.database.source_states import to_table, to_tick
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableStatus


@dataclass(frozen=True)
class Standing:
    """A table in its current generation: a new one that is filled beside it is nothing that readers see.

    :param name: the one it bears now.
    :param upper: its next time to be written; 0 while no tick of it is committed.
    :param lag: ticks of its source's log that it has not got. :param behind: the offsets in them.
    :param done: offsets it has gone through, of ``total`` up to the end of the log.
    """

    table_id: ItemId
    name: Name
    source_id: ItemId
    source: str
    status: TableStatus
    reason: str | None
    upper: int
    lag: int
    behind: int
    done: int
    total: int

    @property
    def table(self) -> str:
        """As it is written in SQL."""
        return display_name(self.name)

    @property
    def is_live(self) -> bool:
        """It is filled tick by tick, and has got the first one."""
        return self.status == "live" and self.upper > 0

    @property
    def far(self) -> str:
        """Its state and how far it is, in words: ``backfilling, 3 ticks (120 offsets) behind``."""
        why = f" ({self.reason})" if self.status == "stalled" and self.reason else ""
        if self.status == "created" or (self.status == "live" and not self.upper):
            return f"{self.status}, without a tick yet"
        offsets = "" if self.status == "live" else f", {self.done:,} of {self.total:,} offsets"
        ticks = f"{self.lag:,} tick{'s' * (self.lag != 1)} ({self.behind:,} offset{'s' * (self.behind != 1)}) behind"
        return f"{self.status}{why}, {ticks}{offsets}"


def standings(session: Session, tables: Collection[ItemId]) -> Mapping[ItemId, Standing]:
    """By id, in the order that was asked for: one query, whatever their number."""
    source_name = aliased(ItemRow, name="source_name")
    newest = select(func.max(TickRow.number)).where(TickRow.source_id == SourceRow.id)
    at_end = (TickRow.source_id == SourceRow.id) & (TickRow.number == newest.correlate(SourceRow).scalar_subquery())
    query = (
        select(ItemRow, TableRow, SourceRow, source_name, TickRow)
        .select_from(TableRow)
        .join(ItemRow, known_as())
        .join(SourceRow, SourceRow.id == TableRow.source_id)
        .join(source_name, source_name.id == SourceRow.id)
        .outerjoin(TickRow, at_end)
        .where(TableRow.id.in_(tables))
    )
    rows = session.execute(query.execution_options(populate_existing=True))
    found = {row.TableRow.id: _standing(row.ItemRow, row.TableRow, row.SourceRow, row[3], row[4]) for row in rows}
    return {table_id: found[table_id] for table_id in tables if table_id in found}


def _standing(item: ItemRow, row: TableRow, source: SourceRow, named: ItemRow, newest: TickRow | None) -> Standing:
    last = to_tick(newest) if newest else None
    state = SourceState(source.id, source.status, source.incarnation, source.start, last=last)
    table = to_table(row, row)
    return Standing(
        table_id=row.id,
        name=(item.schema_name, item.name),
        source_id=source.id,
        source=display_name((named.schema_name, named.name)),
        status=row.status,
        reason=row.reason,
        upper=row.upper,
        lag=backfill_rules.lag(state, table),
        behind=state.upper.gap(table.position),
        done=table.position.gap(table.start),
        total=state.upper.gap(table.start),
    )
