"""ALTER SOURCE … ADD and DROP SUBSOURCE, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.objects import flags, items, legacy_sources
from airflow_provider_mzshare.control.catalog.objects.dependents import leaving_with
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, NotPossible, StillUsed, run_sql
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.printing import print_statement
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Decision
from airflow_provider_mzshare.control.statements.finding import bearer_of, told
from airflow_provider_mzshare.control.statements.handlers.drops import drop_all, with_others
from airflow_provider_mzshare.control.statements.handlers.new_tables import move_start, what_next, with_start
from airflow_provider_mzshare.control.statements.legacy.naming import check_free
from airflow_provider_mzshare.control.statements.legacy.outputs import NamedOutput, default_name, named_outputs
from airflow_provider_mzshare.control.statements.legacy.problems import OldSyntax, ReferenceTaken
from airflow_provider_mzshare.control.statements.legacy.replacing import table_statement
from airflow_provider_mzshare.control.statements.legacy.settling import settle
from airflow_provider_mzshare.control.statements.legacy.texts import sql_of
from airflow_provider_mzshare.control.statements.purification import resolve, stored_reference, written
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.errors import UnknownItem

# ── ADD ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add_subsources(session: Session, checked: Checked[sql.AddSubsources], context: Context) -> Result:
    """A subsource that is added later is backfilled, as a later table is. Those of one transaction share a backfill."""
    statement = checked.statement
    items.lock_namespace(session)
    source = items.find_source(session, name_pair(statement.source))
    if checked.references is None or checked.source_id not in (None, source.id):
        raise ChangedMeanwhile(f"source {statement.source}")
    outputs = _asked(checked, source)
    _check_old(session, source, outputs)
    _check_references(session, source, outputs)
    notes = [_add(session, source, output, checked, context) for output in outputs]
    settle(session, source.id, context, listed=True)
    return done("ALTER SOURCE", statement.source, source.id, context.dry_run, "; ".join(notes))


def _asked(checked: Checked[sql.AddSubsources], source: items.SourceItem) -> list[NamedOutput]:
    statement, name = checked.statement, QualifiedName(*source.name)
    wishes = []
    for reference, alias in statement.subsources:
        found = resolve(reference, checked.references or (), str(name))
        wishes.append((found, alias or default_name(name, found)))
    options = LegacySpec(shape="tables", text_columns=statement.text_columns, exclude_columns=statement.exclude_columns)
    return named_outputs(name, source.spec, options, wishes)


def _check_old(session: Session, source: items.SourceItem, outputs: Sequence[NamedOutput]) -> None:
    """Only a source that has subsources gets more of them."""
    name = QualifiedName(*source.name)
    instead = [print_statement(table_statement(output, name)) for output in outputs]
    if flags.is_on(session, flags.FORCE_TABLES):
        raise OldSyntax("ALTER SOURCE … ADD SUBSOURCE", instead)
    stored = source.spec.legacy
    if stored is None:
        raise NotPossible(f"source {name} has tables, not subsources", hint=run_sql("; ".join(instead)))
    if stored.shape == "single":
        shown = kind_of(source.spec).shown(source.spec)
        raise NotPossible(
            f"source {name} has no subsources: {shown} has one output, the source's own",
            hint=run_sql(f"CREATE TABLE … FROM SOURCE {name}"),
        )


def _check_references(session: Session, source: items.SourceItem, outputs: Sequence[NamedOutput]) -> None:
    have = {written(stored_reference(s.spec)): s for s in legacy_sources.subsources(session, source.id)}
    for output in outputs:
        reference = written(stored_reference(output.spec))
        if reference in have:
            raise ReferenceTaken(reference, str(QualifiedName(*source.name)), str(QualifiedName(*have[reference].name)))


def _add(
    session: Session,
    source: items.SourceItem,
    output: NamedOutput,
    checked: Checked[sql.AddSubsources],
    context: Context,
) -> str:
    reference = written(stored_reference(output.spec))
    check_name(output.name)
    check_free(session, output.name, f"subsource of {reference}", hint=f"ADD SUBSOURCE {reference} AS another name")
    found = load_state(session, lock_source(session, source.id))
    state = move_start(session, found, with_start(found, checked).start)
    arrival = arrival_plans.create(state, str(output.name), snapshot=True)
    _, backfill_id = legacy_sources.add_subsource(session, state, name_pair(output.name), output.spec, arrival)
    context.decisions.append(Decision(source, state, arrival, checked.sizes))
    context.does("create subsource", str(output.name), f"of {reference}")
    return f"{output.name} {what_next(arrival, backfill_id, source, context.dry_run)}"


# ── DROP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_subsources(session: Session, checked: Checked[sql.DropSubsources], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    source = items.find_source(session, name_pair(statement.source))
    found = [item for name in statement.names if (item := _subsource(session, source, name, statement.if_exists))]
    if not found:
        return done("ALTER SOURCE", statement.source, source.id, context.dry_run, "nothing to drop")
    leaving = leaving_with(session, [bearer_of(item) for item in found])
    dependents = [one.item for one in leaving if one.why == "dependent"]
    if dependents and not statement.cascade:
        raise StillUsed("source", ", ".join(item.display for item in found), told(dependents))
    drop_all(session, leaving, context)
    gone = ", ".join(str(QualifiedName(*item.name)) for item in found)
    note = " ".join(filter(None, (f"dropped {gone}", with_others(leaving))))
    return done("ALTER SOURCE", statement.source, source.id, context.dry_run, note)


def _subsource(
    session: Session, source: items.SourceItem, name: QualifiedName, if_exists: bool
) -> items.TableItem | None:
    item = items.find(session, name_pair(name))
    if item is None and if_exists:
        return None
    if not isinstance(item, items.TableItem) or item.kind != "subsource":
        raise UnknownItem("subsource", str(name), item.kind if item else None)
    if item.source_id != source.id:
        owner = items.get_source_item(session, item.source_id)
        raise NotPossible(
            f"subsource {name} does not belong to source {QualifiedName(*source.name)}",
            hint=run_sql(f"ALTER SOURCE {owner.display} DROP SUBSOURCE {item.display}"),
        )
    return item


# ── CREATE SUBSOURCE ──────────────────────────────────────────────────────────────────────────────────────────────────


def create_subsource(session: Session, checked: Checked[sql.CreateSubsource], context: Context) -> Result:
    """It is only ever printed: a subsource comes with its source, or is added to it."""
    statement = checked.statement
    source, reference = statement.source, sql_of(statement.reference)
    hint = f"ALTER SOURCE {source} ADD SUBSOURCE {reference} AS {statement.name}"
    if not statement.reference or flags.is_on(session, flags.FORCE_TABLES):
        hint = f"CREATE TABLE {statement.name} FROM SOURCE {source} (REFERENCE {reference or '…'})"
    raise NotPossible("CREATE SUBSOURCE only shows a subsource, and cannot create one", hint=run_sql(hint))
