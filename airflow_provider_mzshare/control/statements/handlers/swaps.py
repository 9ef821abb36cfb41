"""SWAP of tables and of schemas, inside the caller's transaction: names change places, ids and all that hangs on them
do not. Planned only where tables may take each other's names (``swap_rule``), and done only while that is still so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.objects import items, renames, schemas
from airflow_provider_mzshare.control.catalog.queries.standings import Standing, standings
from airflow_provider_mzshare.control.definition_errors import NotPossible, UnknownSchema
from airflow_provider_mzshare.control.lifecycle.swap_rule import Taking, check_takings, obstacle
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.printing import print_statement
from airflow_provider_mzshare.control.statements.answers import Result, done, full_name, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Planner
from airflow_provider_mzshare.control.statements.facts import Facts
from airflow_provider_mzshare.control.statements.finding import existing_schema, expected
from airflow_provider_mzshare.control.statements.legacy.settling import settle_all
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import StalePlan, UnknownItem

_TOLD = 8
"""How many tables a message lists; EXPLAIN has a row for each."""


@dataclass(frozen=True)
class Side:
    """A table or a schema that takes part; ``name`` is written in full, as in SQL."""

    id: str
    name: str


@dataclass(frozen=True)
class NameSwap:
    """:param takings: tables with the names they take: for tables the two that swap, for schemas all their tables."""

    statement: sql.Swap
    one: Side
    other: Side
    takings: tuple[Taking, ...]


# ── plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_swap(facts: Facts, checked: Checked[sql.Swap]) -> NameSwap:
    """Refused unless the tables may take the names, or it is forced."""
    found = _look(facts, checked.statement)
    if not found.statement.force:
        check_takings(found.takings, hints.sql(print_statement(replace(found.statement, force=True))))
    return found


def _look(facts: Facts, statement: sql.Swap) -> NameSwap:
    """The swap as it would be now, whether it may be or not."""
    if isinstance(statement.name, QualifiedName) and isinstance(statement.other, QualifiedName):
        return _look_at_tables(facts, statement, statement.name, statement.other)
    return _look_at_schemas(facts, statement, str(statement.name), str(statement.other))


def _look_at_tables(facts: Facts, statement: sql.Swap, name: QualifiedName, other_name: QualifiedName) -> NameSwap:
    one = expected(statement.kind, name, facts.named(name_pair(name)))
    other = expected(statement.kind, other_name, facts.named(name_pair(other_name)))
    if one.id == other.id:
        raise NotPossible(f"table {one.display} cannot be swapped with itself", hint="another table's name")
    stand = _standings(facts, (one.id, other.id))
    takings = (Taking(stand[one.id], stand[other.id]), Taking(stand[other.id], stand[one.id]))
    return NameSwap(statement, Side(one.id, full_name(one.name)), Side(other.id, full_name(other.name)), takings)


def _look_at_schemas(facts: Facts, statement: sql.Swap, name: str, other_name: str) -> NameSwap:
    """All tables of both schemas count, because each of them gets a new name."""
    one, other = _schema(facts, name), _schema(facts, other_name)
    if one.id == other.id:
        raise NotPossible(f"schema {one.display} cannot be swapped with itself", hint="another schema's name")
    tables = facts.once("tables", lambda: items.list_tables(facts.session))
    stand = _standings(facts, tuple(table.id for table in tables if table.name[0] in (name, other_name)))
    by_name = {table.name: table for table in stand.values()}
    across = {name: other_name, other_name: name}
    # A table takes the name of the table with this name in the other schema, or a name that is new there.
    takings = [Taking(table, by_name.get((across[schema], plain))) for (schema, plain), table in by_name.items()]
    return NameSwap(statement, Side(one.id, one.display), Side(other.id, other.display), tuple(takings))


def _schema(facts: Facts, name: str) -> schemas.Schema:
    return facts.once(("schema", name), lambda: existing_schema(facts.session, name))


def _standings(facts: Facts, ids: tuple[ItemId, ...]) -> Mapping[ItemId, Standing]:
    return facts.once(("standings", ids), lambda: standings(facts.session, ids))


# ── carry out ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def execute_swap(facts: Facts, plan: NameSwap, context: Context) -> Result:
    _check_current(facts, plan)
    statement, one, other = plan.statement, plan.one, plan.other
    kind = "table" if isinstance(statement.name, QualifiedName) else "schema"
    for taking in plan.takings:
        context.does("check table", full_name(taking.table.name), taking.table.far)
    if isinstance(statement.name, QualifiedName) and isinstance(statement.other, QualifiedName):
        sides = (ItemId(one.id), name_pair(statement.name)), (ItemId(other.id), name_pair(statement.other))
        renames.swap_items(facts.session, *sides)
    else:
        schemas.swap_schemas(facts.session, str(statement.name), str(statement.other))
        settle_all(facts.session, context)
    context.does(f"rename {kind}", one.name, f"to {other.name}")
    context.does(f"rename {kind}", other.name, f"to {one.name}")
    told = f"swapped with {other.name} {other.id}{_told(plan.takings, context)}"
    return done(f"ALTER {kind.upper()}", one.name, one.id, context.dry_run, told)


def _told(takings: Sequence[Taking], context: Context) -> str:
    """The state of the tables that readers get, as text after the result."""
    shown = takings if context.dry_run else [taking for taking in takings if obstacle(taking)]
    more = f"; and {len(shown) - _TOLD} more" if len(shown) > _TOLD else ""
    return "".join(f"; {one.table.table} is {one.table.far}" for one in shown[:_TOLD]) + more


def _check_current(facts: Facts, plan: NameSwap) -> None:
    """Raise StalePlan unless names and tables are the same, and the tables may still take the names."""
    what = f"the swap of {plan.one.name} and {plan.other.name}"
    try:
        now = _look(facts, plan.statement)
    except (UnknownItem, UnknownSchema) as gone:
        raise StalePlan(what, [gone.message]) from None
    pairs = ((plan.one, now.one), (plan.other, now.other))
    changes = [f"{was.name} was {was.id}, and is {is_now.id} now" for was, is_now in pairs if was.id != is_now.id]
    if changes := changes or _changed_takings(plan, now):
        raise StalePlan(what, changes)


def _changed_takings(plan: NameSwap, now: NameSwap) -> list[str]:
    before = {taking.table.table_id: taking for taking in plan.takings}
    present = {taking.table.table_id: taking for taking in now.takings}
    changes = [f"table {before[one].table.table} is no longer in its schema" for one in before.keys() - present.keys()]
    changes += [f"table {present[one].table.table} was added to its schema" for one in present.keys() - before.keys()]
    if plan.statement.force:
        return sorted(changes)
    worse = {one: why for one, taking in present.items() if one in before and (why := obstacle(taking))}
    told = [f"table {before[one].table.table} was {before[one].table.far}, and is {worse[one]} now" for one in worse]
    return [*sorted(changes), *told]


SWAP = Planner(plan_swap, execute_swap)
