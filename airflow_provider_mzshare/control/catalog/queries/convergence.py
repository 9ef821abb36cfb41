"""How far tables are from being live: one query for any number of them. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Executable, Select, func, or_, select
from sqlalchemy.orm import Session, aliased

from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    CertificateRow,
    ItemRow,
    JobRow,
    JobState,
    ReplacementRow,
    SourceRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.database.source_states import to_table, to_tick
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as, named_tables
from airflow_provider_mzshare.control.catalog.queries.certificates import Certificate, to_certificate
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    SourceState,
    SourceStatus,
    TableState,
    TableStatus,
)

Key = ItemId | Name
"""A table by its id, dropped or not, or by the name it bears now."""


@dataclass(frozen=True)
class Convergence:
    """A table on its way to being live, as one snapshot shows it.

    :param table: its name as in SQL.
    :param replacement: the status of a new generation that is to replace the current one.
    :param generation: the current one. :param awaited: the one that is to become live: the replacement's, if any.
    :param reason: why what is awaited has stalled.
    :param lag: ticks minted that it has not got. :param behind: the offsets in them.
    :param job_error: last words of the newest job of its backfill.
    :param certificate: of its last cutover, if it ever was brought up by a backfill.
    :param queued: its backfill waits until fewer run.
    :param upper: of the current generation: what is before it is final; 0 while no tick of it is committed.
    """

    table_id: ItemId
    table: str
    source_id: ItemId
    source: str
    source_status: SourceStatus
    source_problem: str | None
    status: TableStatus
    replacement: TableStatus | None
    generation: int
    awaited: int
    reason: str | None
    lag: int
    behind: int
    history_complete: bool
    backfill_id: BackfillId | None
    job_id: JobId | None
    job_state: JobState | None
    job_error: str | None
    certificate: Certificate | None
    queued: bool = False
    upper: int = 0

    @property
    def converged(self) -> bool:
        return self.status == "live" and self.replacement is None

    @property
    def cutover_tick(self) -> int | None:
        """The tick that made it live; None while it is not, and where no backfill was needed."""
        return self.certificate.tick if self.certificate and self.converged else None

    @property
    def is_stalled(self) -> bool:
        """What is awaited has stalled: the table, or the new generation that is to replace it."""
        return self._arriving_status == "stalled"

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def error(self) -> str | None:
        """Why it will not become live by itself. A lost job is none of the reasons: it is started again."""
        if self.status == "dropped":
            return f"table {self.table} was dropped"
        if self.is_stalled:
            what = "the new generation of table" if self.replacement else "table"
            return f"{what} {self.table} is stalled: {self.reason}"
        if self.converged:
            return None
        if self.source_status != "active":
            return self._source_error
        if self.job_state == "failed":
            return f"backfill {self.backfill_id} of table {self.table} failed: {self.job_error or 'it left no message'}"
        return None

    @property
    def at_its_end(self) -> str | None:
        """Why ``upper`` will not move by itself. A live table goes on, whatever its new generation does."""
        if self.status == "live":
            return None if self.source_status == "active" else self._source_error
        return self.error

    @property
    def _source_error(self) -> str:
        return f"source {self.source} is {self.source_status}: {self.source_problem}"

    def can_arm(self, max_lag: int) -> bool:
        """Would it converge if it were asked to now? The rule decides again, behind the source's lock."""
        close = self.history_complete and self.lag <= max_lag
        return self._arriving_status == "backfilling" and close and self.source_status == "active"

    @property
    def progress(self) -> str:
        """One line for a log."""
        waits = ", its backfill is queued" if self.queued else ""
        return f"table {self.table} is {self._arriving_status}, {self.lag} ticks ({self.behind} offsets) behind{waits}"

    @property
    def _arriving_status(self) -> TableStatus:
        return self.replacement or self.status


def convergences(session: Session, tables: Collection[Key]) -> Mapping[Key, Convergence]:
    """By the keys that were asked for; those that name no table are left out."""
    found: dict[Key, Convergence] = {}
    for row in session.execute(_query(tables)):
        convergence = _convergence(row)
        found[convergence.table_id] = convergence
        if row.ItemRow.dropped_at is None:
            found[row.ItemRow.schema_name, row.ItemRow.name] = convergence
    return {key: found[key] for key in tables if key in found}


SourceName = aliased(ItemRow, name="source_name")


def _query(tables: Collection[Key]) -> Executable:
    """Everything about each table in one row: what it is, where its log ends, who brings it up, how it went live."""
    backfill_id = func.coalesce(ReplacementRow.backfill_id, TableRow.backfill_id)
    newest_tick = select(func.max(TickRow.number)).where(TickRow.source_id == SourceRow.id)
    newest_job = select(func.max(JobRow.number)).where(JobRow.backfill_id == backfill_id)
    newest_proof = select(func.max(CertificateRow.number)).where(CertificateRow.table_id == TableRow.id)
    at_end = (TickRow.source_id == SourceRow.id) & (TickRow.number == _one(newest_tick, SourceRow))
    query = (
        select(ItemRow, TableRow, ReplacementRow, SourceRow, SourceName, TickRow, BackfillRow, JobRow, CertificateRow)
        .select_from(TableRow)
        .join(ItemRow, known_as())
        .join(SourceRow, SourceRow.id == TableRow.source_id)
        .join(SourceName, SourceName.id == SourceRow.id)
        .outerjoin(ReplacementRow, ReplacementRow.table_id == TableRow.id)
        .outerjoin(TickRow, at_end)
        .outerjoin(BackfillRow, BackfillRow.id == backfill_id)
        .outerjoin(JobRow, JobRow.number == _one(newest_job, ReplacementRow, TableRow))
        .outerjoin(CertificateRow, CertificateRow.number == _one(newest_proof, TableRow))
        .where(_any_of(tables))
    )
    return query.execution_options(populate_existing=True)


def _one(query: Select[Any], *outside: Any) -> Any:
    return query.correlate(*outside).scalar_subquery()


def _any_of(tables: Collection[Key]) -> ColumnElement[bool]:
    ids = {key for key in tables if isinstance(key, str)}
    names = {key for key in tables if isinstance(key, tuple)}
    return or_(TableRow.id.in_(ids), TableRow.id.in_(named_tables(names)))


def _convergence(row: Any) -> Convergence:
    table: TableRow = row.TableRow
    replacement: ReplacementRow | None = row.ReplacementRow
    source: SourceRow = row.SourceRow
    job: JobRow | None = row.JobRow
    awaited = replacement or table
    shown = (table.id, row.ItemRow), (source.id, row.source_name)
    names = {item_id: display_name((item.schema_name, item.name)) for item_id, item in shown}
    state, arriving = _states(source, table, awaited, row.TickRow, row.BackfillRow)
    return Convergence(
        table_id=table.id,
        table=names[table.id],
        source_id=source.id,
        source=names[source.id],
        source_status=source.status,
        source_problem=source.message or source.reason,
        status=table.status,
        replacement=replacement.status if replacement else None,
        generation=table.generation,
        awaited=awaited.generation,
        reason=awaited.reason,
        lag=backfill_rules.lag(state, arriving),
        behind=state.upper.gap(arriving.position),
        history_complete=backfill_rules.history_is_complete(state, arriving),
        backfill_id=awaited.backfill_id,
        job_id=job.id if job else None,
        job_state=job.state if job else None,
        job_error=job.error if job else None,
        certificate=to_certificate(row.CertificateRow, names) if row.CertificateRow else None,
        queued=row.BackfillRow is not None and row.BackfillRow.queued_at is not None,
        upper=table.upper,
    )


def _states(
    source: SourceRow,
    table: TableRow,
    awaited: TableRow | ReplacementRow,
    newest: TickRow | None,
    backfill: BackfillRow | None,
) -> tuple[SourceState, TableState]:
    """As much of the source and the table as the rules of convergence look at."""
    state = SourceState(
        source_id=source.id,
        status=source.status,
        incarnation=source.incarnation,
        start=source.start,
        last=to_tick(newest) if newest else None,
        backfills={backfill.id: BackfillState(backfill.id, backfill.history_tick)} if backfill else {},
    )
    return state, to_table(table, awaited)
