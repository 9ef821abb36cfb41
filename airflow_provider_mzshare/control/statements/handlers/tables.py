"""ALTER TABLE inside the caller's transaction: heals tables the way their plan says, and changes their options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.source_states import lock_source, ticks_from
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, NotPossible
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Decision, Planner
from airflow_provider_mzshare.control.statements.facts import Facts
from airflow_provider_mzshare.control.statements.handlers.new_tables import what_next
from airflow_provider_mzshare.control.statements.upstream_checks import Checked, alter
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog import arrival_plans

# ── ALTER TABLE ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class HealPlan:
    """RESUME or RESNAPSHOT. :param bearer: of the name: the table, or the old-style source whose output it is."""

    statement: sql.AlterTable
    bearer: items.Item | None
    table: items.TableItem
    decision: Decision


def plan_heal(facts: Facts, checked: Checked[sql.AlterTable]) -> HealPlan:
    statement = checked.statement
    name = name_pair(statement.name)
    table = facts.table(name)
    source = facts.source(table.source_id)
    if checked.source_id not in (None, source.id):
        raise ChangedMeanwhile(f"table {statement.name}")
    state = facts.state(source.id)
    arrival = alter(state, table, statement)
    if checked.gone is not None:
        arrival = arrival_plans.without_gone(arrival, checked.gone, ticks_from(facts.session, source.id, arrival.tick))
    decision = Decision(source, state, arrival, checked.sizes, checked.kept_seconds)
    return HealPlan(statement, facts.named(name), table, decision)


def execute_heal(facts: Facts, plan: HealPlan, context: Context) -> Result:
    statement, decision = plan.statement, plan.decision
    facts.check_same(f"table {statement.name}", name_pair(statement.name), plan.bearer)
    backfill_id = arrivals.heal(facts.session, facts.state(decision.source.id), decision.arrival)
    context.decisions.append(decision)
    note = what_next(decision.arrival, backfill_id, decision.source, context.dry_run)
    return done("ALTER TABLE", statement.name, plan.table.id, context.dry_run, note)


HEAL = Planner(plan_heal, execute_heal)


def set_options(session: Session, checked: Checked[sql.AlterTableSet], context: Context) -> Result:
    """SET and RESET: what may change while the table is written. The writer takes it up at its next tick."""
    statement = checked.statement
    items.lock_namespace(session)
    table = items.find_table(session, name_pair(statement.name))
    if table.kind != "table":
        raise NotPossible(
            f"{table.display} is not a table: outputs in old syntax have no options",
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
