"""CREATE TABLE … FROM SOURCE inside the caller's transaction: tables are planned one by one and written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.database.models import SourceRow
from airflow_provider_mzshare.control.catalog.objects import flags, items
from airflow_provider_mzshare.control.catalog.objects.item_names import add_items
from airflow_provider_mzshare.control.catalog.objects.references import list_references
from airflow_provider_mzshare.control.catalog.objects.table_rows import NewTable, add_tables
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, FlagOff
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Decision, Planner
from airflow_provider_mzshare.control.statements.facts import Facts
from airflow_provider_mzshare.control.statements.purification import purify, resolve, stored_reference, written
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked, is_untouched
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.errors import NameTaken, SpecConflict

_JOINS = "joins at the next tick"
Made = Mapping[items.Name, tuple[ItemId, BackfillId | None]]


@dataclass(frozen=True)
class NewTablePlan:
    """A table that is to be made, or is there already.

    :param present: the table that exists already: then nothing is to be done.
    :param start: the source's new start, if its first table decides it.
    """

    statement: sql.CreateTable
    spec: TableSpec
    decision: Decision
    present: items.TableItem | None = None
    start: Position | None = None

    @property
    def name(self) -> items.Name:
        return name_pair(self.statement.name)


# ── plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_table(facts: Facts, checked: Checked[sql.CreateTable]) -> NewTablePlan:
    return plan_tables(facts, [checked])[0]


def plan_tables(facts: Facts, run: Sequence[Checked[sql.CreateTable]]) -> list[NewTablePlan]:
    """Plan several tables. Their names differ, and none of them is the name of another's source."""
    _check_flag(facts)
    facts.look_up({name_pair(name) for one in run for name in (one.statement.name, one.statement.source)})
    planning = _Planning(facts)
    return [planning.plan(checked) for checked in run]


def _check_flag(facts: Facts) -> None:
    if not facts.is_on(flags.ENABLE_TABLES):
        raise FlagOff(flags.ENABLE_TABLES, "CREATE TABLE … FROM SOURCE")


class _Planning:
    """Plans tables that are created together."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._states: dict[ItemId, SourceState] = {}
        """The state of each source that gets a table here, with its final start."""
        self._offered: dict[ItemId, list[ReferenceInfo]] = {}

    def plan(self, checked: Checked[sql.CreateTable]) -> NewTablePlan:
        statement = checked.statement
        of = name_pair(statement.source)
        source, present = items.as_source(of, self._facts.named(of)), self._facts.named(name_pair(statement.name))
        if present is not None:
            return self._plan_present(checked, source, _same_kind(statement, present))
        check_name(statement.name)
        found = self._states.get(source.id) or self._facts.state(source.id)
        state = self._states.setdefault(source.id, with_start(found, checked))
        spec = new_spec(statement, source, checked)
        start = None if state.start == found.start else state.start
        return NewTablePlan(statement, spec, _decision(source, state, checked), start=start)

    def _plan_present(
        self, checked: Checked[sql.CreateTable], source: items.SourceItem, present: items.TableItem
    ) -> NewTablePlan:
        spec = self._same_spec(checked.statement, source, present)
        items.check_same_table(self._facts.session, present, source.id, spec)
        state = self._states.get(source.id) or self._facts.state(source.id)
        return NewTablePlan(checked.statement, spec, _decision(source, state, checked), present)

    def _same_spec(self, statement: sql.CreateTable, source: items.SourceItem, present: items.TableItem) -> TableSpec:
        """The definition of an existing table as it is stored: no upstream is asked, so its changes are not seen."""
        if present.source_id != source.id:
            return present.spec
        own = stored_reference(present.spec)
        if source.id not in self._offered:
            stored, database = list_references(self._facts.session, source.id), kind_of(source.spec).database
            self._offered[source.id] = [ReferenceInfo(r.namespace, r.name, database=database) for r in stored]
        known = [own, *(other for other in self._offered[source.id] if written(other) != written(own))]
        found = resolve(statement.reference, known, str(statement.source))
        if found is not own:
            raise SpecConflict(str(statement.name), f"its reference is {written(own)}, not {written(found)}")
        return purify(statement, source.spec, own).model_copy(update={"details": present.spec.details})


def _decision(source: items.SourceItem, state: SourceState, checked: Checked[sql.CreateTable]) -> Decision:
    statement = checked.statement
    arrival = arrival_plans.create(state, str(statement.name), snapshot=statement.snapshot)
    return Decision(source, state, arrival, checked.sizes, checked.kept_seconds)


def _same_kind(statement: sql.CreateTable, present: items.Item) -> items.TableItem:
    if not isinstance(present, items.TableItem) or present.kind != "table" or not statement.if_not_exists:
        raise NameTaken(present.display, present.kind, "table")
    return present


def new_spec(statement: sql.CreateTable, source: items.SourceItem, checked: Checked[Any]) -> TableSpec:
    """The definition, resolved against what the upstream said. Raises if another source was asked."""
    if checked.references is None or checked.source_id not in (None, source.id):
        raise ChangedMeanwhile(f"source {statement.source}")
    reference = resolve(statement.reference, checked.references, str(statement.source))
    return purify(statement, source.spec, reference)


def with_start(state: SourceState, checked: Checked[Any]) -> SourceState:
    """If a source starts at the earliest record, its first table decides which record that is."""
    if checked.start is None or not is_untouched(state) or state.incarnation != checked.incarnation:
        return state
    return replace(state, start=checked.start)


# ── carry out ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def execute_table(facts: Facts, plan: NewTablePlan, context: Context) -> Result:
    return execute_tables(facts, [plan], [context])[0]


def execute_tables(facts: Facts, plans: Sequence[NewTablePlan], contexts: Sequence[Context]) -> Sequence[Result]:
    """The same results as one by one, with as few queries as for one."""
    _check_flag(facts)
    facts.look_up({plan.name for plan in plans})
    for plan in plans:
        facts.check_same(f"table {plan.statement.name}", plan.name, plan.present)
    made = _write(facts, [plan for plan in plans if plan.present is None])
    return [_told(plan, made, context) for plan, context in zip(plans, contexts, strict=True)]


def create_tables(
    session: Session, run: Sequence[Checked[sql.CreateTable]], contexts: Sequence[Context]
) -> Sequence[Result]:
    """Planned and carried out in one transaction."""
    facts = Facts(session)
    return execute_tables(facts, plan_tables(facts, run), contexts)


def _write(facts: Facts, plans: Sequence[NewTablePlan]) -> Made:
    """With ids in the order of their statements."""
    if not plans:
        return {}
    ids = add_items(facts.session, "table", [plan.name for plan in plans])
    by_source: dict[ItemId, list[tuple[NewTablePlan, ItemId]]] = {}
    for plan, table_id in zip(plans, ids, strict=True):
        by_source.setdefault(plan.decision.source.id, []).append((plan, table_id))
    made: dict[items.Name, tuple[ItemId, BackfillId | None]] = {}
    for source_id, tables in by_source.items():
        start = next((plan.start for plan, _ in tables if plan.start is not None), None)
        state = move_start(facts.session, facts.state(source_id), start)
        new = [NewTable(table_id, plan.spec, plan.decision.arrival) for plan, table_id in tables]
        backfill_id = add_tables(facts.session, state, new)
        made |= {plan.name: (table_id, backfill_id) for plan, table_id in tables}
    return made


def move_start(session: Session, state: SourceState, start: Position | None) -> SourceState:
    """Set the start of a source without tables. If it got tables meanwhile, its start stays, and plans are stale."""
    if start in (None, state.start) or not is_untouched(state):
        return state
    session.execute(update(SourceRow).where(SourceRow.id == state.source_id).values(start=start))
    return replace(state, start=start)


def _told(plan: NewTablePlan, made: Made, context: Context) -> Result:
    name = plan.statement.name
    if plan.present is not None:
        return done("CREATE TABLE", name, plan.present.id, context.dry_run, "it exists")
    table_id, backfill_id = made[plan.name]
    context.decisions.append(plan.decision)
    note = what_next(plan.decision.arrival, backfill_id, plan.decision.source, context.dry_run)
    return done("CREATE TABLE", name, None if context.dry_run else table_id, context.dry_run, note)


def what_next(arrival: Arrival, backfill_id: BackfillId | None, source: items.SourceItem, dry_run: bool) -> str:
    """What happens now. An id given in a dry run was never given."""
    if arrival.way != "backfill":
        return _JOINS
    return "gets a backfill" if dry_run else f"backfill {backfill_id}: {hints.start(source.name)} starts it"


CREATE = Planner(plan_table, execute_table)
