"""ALTER TABLE inside the caller's transaction: heals tables the way their plan says, and changes their options."""

from __future__ import annotations

import shlex
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, NotPossible
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Decision
from airflow_provider_mzshare.control.statements.handlers.new_tables import what_next
from airflow_provider_mzshare.control.statements.upstream_checks import Checked, alter
from airflow_provider_mzshare.core.specs import TableSpec

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
