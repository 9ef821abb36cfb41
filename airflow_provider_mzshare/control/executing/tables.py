"""Makes, heals and changes tables inside the caller's transaction, each the way its plan says."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control import hints, table_plans
from airflow_provider_mzshare.control.answers import Result, done, name_pair
from airflow_provider_mzshare.control.catalog import arrivals, flags, items
from airflow_provider_mzshare.control.catalog.models import SourceRow
from airflow_provider_mzshare.control.catalog.references import list_references
from airflow_provider_mzshare.control.catalog.states import load_state, lock_source
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, FlagOff, NotPossible
from airflow_provider_mzshare.control.executing.context import Context, Decision
from airflow_provider_mzshare.control.executing.purifying import purify, resolve, stored_reference, written
from airflow_provider_mzshare.control.executing.reserving import check_name
from airflow_provider_mzshare.control.sql import items as sql
from airflow_provider_mzshare.control.statement_checks import Checked, alter, is_untouched
from airflow_provider_mzshare.control.table_plans import Arrival
from airflow_provider_mzshare.errors import NameTaken, SpecConflict
from airflow_provider_mzshare.storage.connectors import ReferenceInfo
from airflow_provider_mzshare.storage.ticks.state import SourceState
from airflow_provider_mzshare.types.ids import BackfillId
from airflow_provider_mzshare.types.specs import TableSpec

_JOINS = "joins at the next tick"


# ── CREATE TABLE … FROM SOURCE ────────────────────────────────────────────────────────────────────────────────────────


def create_table(session: Session, checked: Checked[sql.CreateTable], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    if not flags.is_on(session, flags.ENABLE_TABLES):
        raise FlagOff(flags.ENABLE_TABLES, "CREATE TABLE … FROM SOURCE")
    source = items.find_source(session, name_pair(statement.source))
    present = items.find(session, name_pair(statement.name))
    state = load_state(session, lock_source(session, source.id))
    if present is None:
        check_name(statement.name)
        state = move_start(session, state, checked)
        spec = new_spec(statement, source, checked)
    else:
        spec = _same_spec(session, statement, source, present)
    arrival = table_plans.create(state, str(statement.name), snapshot=statement.snapshot)
    table_id = items.create_table(
        session,
        name=name_pair(statement.name),
        source_id=source.id,
        spec=spec,
        snapshot=arrival.way != "now",
        if_not_exists=statement.if_not_exists,
    )
    if present is not None:
        return done("CREATE TABLE", statement.name, table_id, context.dry_run, "it exists")
    context.decisions.append(Decision(source, state, arrival, checked.sizes))
    note = what_next(arrival, items.get_table_item(session, table_id).backfill_id, source, context.dry_run)
    return done("CREATE TABLE", statement.name, None if context.dry_run else table_id, context.dry_run, note)


def new_spec(statement: sql.CreateTable, source: items.SourceItem, checked: Checked[Any]) -> TableSpec:
    """Resolved against what the upstream said; it must have been this source that was asked."""
    if checked.references is None or checked.source_id not in (None, source.id):
        raise ChangedMeanwhile(f"source {statement.source}")
    reference = resolve(statement.reference, checked.references, str(statement.source))
    return purify(statement, source.spec, reference)


def _same_spec(
    session: Session, statement: sql.CreateTable, source: items.SourceItem, present: items.Item
) -> TableSpec:
    """Of a table that is there, by what it was made from then: no upstream is asked, and no drift is seen."""
    if not isinstance(present, items.TableItem) or present.kind != "table" or not statement.if_not_exists:
        raise NameTaken(present.display, present.kind, "table")
    own = stored_reference(present.spec)
    others = [ReferenceInfo(r.namespace, r.name) for r in list_references(session, source.id)]
    known = [own, *(other for other in others if written(other) != written(own))]
    if present.source_id != source.id:
        return present.spec
    found = resolve(statement.reference, known, str(statement.source))
    if found is not own:
        raise SpecConflict(str(statement.name), f"its reference is {written(own)}, not {written(found)}")
    return purify(statement, source.spec, own).model_copy(update={"details": present.spec.details})


def move_start(session: Session, state: SourceState, checked: Checked[Any]) -> SourceState:
    """The first table decides where a source begins that was to begin at the earliest record."""
    if checked.start is None or not is_untouched(state) or state.incarnation != checked.incarnation:
        return state
    session.execute(update(SourceRow).where(SourceRow.id == state.source_id).values(start=checked.start))
    return replace(state, start=checked.start)


# ── ALTER TABLE ───────────────────────────────────────────────────────────────────────────────────────────────────────


def alter_table(session: Session, checked: Checked[sql.AlterTable], context: Context) -> Result:
    """RESUME and RESNAPSHOT."""
    statement = checked.statement
    # Namespace first, as everywhere: a later statement of the transaction may need it.
    items.lock_namespace(session)
    table = items.find_table(session, name_pair(statement.name))
    source = items.get_source_item(session, table.source_id)
    if checked.source_id not in (None, source.id):
        raise ChangedMeanwhile(f"table {statement.name}")
    state = load_state(session, lock_source(session, source.id))
    arrival = alter(state, table, statement)
    heal = arrivals.resume_table if statement.action == "resume" else arrivals.resnapshot_table
    note = what_next(arrival, heal(session, table.id), source, context.dry_run)
    context.decisions.append(Decision(source, state, arrival, checked.sizes))
    return done("ALTER TABLE", statement.name, table.id, context.dry_run, note)


def set_options(session: Session, checked: Checked[sql.AlterTableSet], context: Context) -> Result:
    """SET and RESET: what may change while the table is written. The writer takes it up at its next tick."""
    statement = checked.statement
    items.lock_namespace(session)
    table = items.find_table(session, name_pair(statement.name))
    if table.kind != "table":
        raise NotPossible(
            f"{table.display} is no table: old syntax has no options for what it names",
            hint=f"CREATE TABLE … FROM SOURCE, or mzshare migrate {shlex.quote(table.display)}",
        )
    lock_source(session, table.source_id)
    table = items.get_table_item(session, table.id)
    usual = {name: TableSpec.model_fields[name].default for name in statement.reset}
    changed: dict[str, Any] = {**usual, **statement.settings}
    spec = TableSpec.model_validate({**table.spec.model_dump(), **changed})
    if spec == table.spec:
        return done("ALTER TABLE", statement.name, table.id, context.dry_run, "nothing changes")
    items.set_table_spec(session, table.id, spec)
    return done("ALTER TABLE", statement.name, table.id, context.dry_run)


def what_next(arrival: Arrival, backfill_id: BackfillId | None, source: items.SourceItem, dry_run: bool) -> str:
    """What happens now. An id given in a dry run was never given."""
    if arrival.way != "backfill":
        return _JOINS
    return "gets a backfill" if dry_run else f"backfill {backfill_id}: {hints.start(source.name)} starts it"
