"""Makes and heals tables inside the caller's transaction, each the way its plan says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy import update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control import table_plans
from airflow_provider_mzshare.control.answers import Result, done, name_pair
from airflow_provider_mzshare.control.catalog import arrivals, items
from airflow_provider_mzshare.control.catalog.models import SourceRow
from airflow_provider_mzshare.control.catalog.states import load_state, lock_source
from airflow_provider_mzshare.control.sql import statements as sql
from airflow_provider_mzshare.control.statement_checks import Checked, alter, is_untouched
from airflow_provider_mzshare.control.table_plans import Arrival
from airflow_provider_mzshare.errors import ReferenceMissing
from airflow_provider_mzshare.storage.ticks.state import SourceState
from airflow_provider_mzshare.types.ids import BackfillId
from airflow_provider_mzshare.types.specs import KafkaSourceSpec

_JOINS = "joins at the next tick"


@dataclass(frozen=True)
class Decision:
    """How one table comes in, with what it was decided upon."""

    source: items.SourceItem
    state: SourceState
    arrival: Arrival
    sizes: Mapping[str, float]


@dataclass(frozen=True)
class Applied:
    """A statement that was carried out; ``group`` tells the transactions of a script apart."""

    group: int
    result: Result
    decision: Decision | None = None


def create_table(
    session: Session, statement: sql.CreateTable, checked: Checked, dry_run: bool
) -> tuple[Result, Decision | None]:
    items.lock_namespace(session)
    source = items.find_source(session, name_pair(statement.source))
    existed = items.find(session, name_pair(statement.name)) is not None
    state = load_state(session, lock_source(session, source.id))
    if not existed:
        state = _move_start(session, state, checked)
    arrival = table_plans.create(state, str(statement.name), snapshot=statement.snapshot)
    table_id = items.create_table(
        session,
        name=name_pair(statement.name),
        source_id=source.id,
        spec=statement.to_spec(_reference(statement, source.spec)),
        snapshot=arrival.way != "now",
        if_not_exists=statement.if_not_exists,
    )
    if existed:
        return done("CREATE TABLE", statement.name, table_id, dry_run, "it exists"), None
    note = _next(arrival, items.get_table_item(session, table_id).backfill_id, dry_run)
    result = done("CREATE TABLE", statement.name, None if dry_run else table_id, dry_run, note)
    return result, Decision(source, state, arrival, checked.sizes)


def _move_start(session: Session, state: SourceState, checked: Checked) -> SourceState:
    """The first table decides where a source begins that was to begin at the earliest record."""
    if checked.start is None or not is_untouched(state) or state.incarnation != checked.incarnation:
        return state
    session.execute(update(SourceRow).where(SourceRow.id == state.source_id).values(start=checked.start))
    return replace(state, start=checked.start)


def _reference(statement: sql.CreateTable, spec: KafkaSourceSpec) -> str:
    if statement.reference not in (None, spec.topic):
        raise ReferenceMissing(
            f"source {statement.source} has no reference {statement.reference!r}", hint=f'REFERENCE "{spec.topic}"'
        )
    return spec.topic


def alter_table(
    session: Session, statement: sql.AlterTable, checked: Checked, dry_run: bool
) -> tuple[Result, Decision | None]:
    # Namespace first, as everywhere: a later statement of the transaction may need it.
    items.lock_namespace(session)
    table = items.find_table(session, name_pair(statement.name))
    source = items.get_source_item(session, table.source_id)
    state = load_state(session, lock_source(session, source.id))
    arrival = alter(state, table, statement)
    heal = arrivals.resume_table if statement.action == "resume" else arrivals.resnapshot_table
    note = _next(arrival, heal(session, table.id), dry_run)
    result = done("ALTER TABLE", statement.name, table.id, dry_run, note)
    return result, Decision(source, state, arrival, checked.sizes)


def _next(arrival: Arrival, backfill_id: BackfillId | None, dry_run: bool) -> str:
    """What happens now. An id given in a dry run was never given."""
    if arrival.way != "backfill":
        return _JOINS
    return "gets a backfill" if dry_run else f"backfill {backfill_id}: mzshare reconcile starts it"


def with_plans(applied: Iterable[Applied]) -> list[Result]:
    """Each result with the plan it is part of: one for all tables of a transaction on the same source."""
    applied = list(applied)
    parts: dict[tuple[int, str], list[Decision]] = {}
    for one in applied:
        if one.decision is not None:
            parts.setdefault((one.group, one.decision.source.id), []).append(one.decision)
    plans = {key: _plan(decisions) for key, decisions in parts.items()}
    return [
        replace(one.result, plan=plans[one.group, one.decision.source.id]) if one.decision else one.result
        for one in applied
    ]


def _plan(decisions: list[Decision]) -> table_plans.TablePlan:
    first = decisions[0]
    return table_plans.plan_tables(
        str(sql.QualifiedName(*first.source.name)),
        first.state,
        first.source.settings,
        [decision.arrival for decision in decisions],
        {partition: size for decision in decisions for partition, size in decision.sizes.items()},
    )
