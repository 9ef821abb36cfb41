"""CREATE SOURCE of the old syntax, inside the caller's transaction: the source and its outputs in one."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.objects import flags, items, legacy_sources
from airflow_provider_mzshare.control.catalog.objects.differences import differences
from airflow_provider_mzshare.control.catalog.objects.references import list_references
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Decision
from airflow_provider_mzshare.control.statements.handlers import sources
from airflow_provider_mzshare.control.statements.legacy.naming import check_free, progress_name
from airflow_provider_mzshare.control.statements.legacy.outputs import (
    NamedOutput,
    asked_subsources,
    clause_of,
    described,
    own_output,
)
from airflow_provider_mzshare.control.statements.legacy.problems import OldSyntax
from airflow_provider_mzshare.control.statements.legacy.replacing import new_statements
from airflow_provider_mzshare.control.statements.legacy.settling import current
from airflow_provider_mzshare.control.statements.purification import resolve, stored_reference, written
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.errors import NameTaken, SpecConflict


def create_source(session: Session, checked: Checked[sql.CreateSource], context: Context) -> Result:
    """:raises ValueError: of a statement that says nothing of outputs."""
    statement, asked = checked.statement, checked.statement.spec.legacy
    if asked is None:
        raise ValueError("this is not an old-style source")
    items.lock_namespace(session)
    present = items.find(session, name_pair(statement.name))
    if flags.is_on(session, flags.FORCE_TABLES):
        references = _known(session, present) if present is not None else list(checked.references or ())
        raise _refusal(statement, asked, references)
    if present is not None:
        return _same(session, statement, asked, present, context)
    if checked.references is None:
        raise ChangedMeanwhile(f"source {statement.name}")
    return _create(session, checked, asked, checked.references, context)


def _refusal(statement: sql.CreateSource, asked: LegacySpec, references: list[ReferenceInfo]) -> OldSyntax:
    outputs = _outputs(statement, asked, references)
    return OldSyntax(f"CREATE SOURCE … {clause_of(statement)}", new_statements(statement, outputs))


def _outputs(
    statement: sql.CreateSource, asked: LegacySpec, references: list[ReferenceInfo] | tuple[ReferenceInfo, ...]
) -> list[NamedOutput]:
    """The outputs. A source that has the rows itself has one output, with the source's name."""
    if asked.shape != "single":
        return asked_subsources(statement.name, statement.spec, asked, references)
    reference = resolve(None, references, str(statement.name))
    return [NamedOutput(statement.name, own_output(statement, asked, reference))]


# ── a new one ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _create(
    session: Session,
    checked: Checked[sql.CreateSource],
    asked: LegacySpec,
    references: tuple[ReferenceInfo, ...],
    context: Context,
) -> Result:
    statement = checked.statement
    outputs = _outputs(statement, asked, references)
    progress = progress_name(statement.name, asked)
    told = described(statement.name, asked, outputs, progress)
    spec = statement.spec.model_copy(update={"legacy": told})
    source_id, _existed = sources.add_source(session, replace(statement, spec=spec), checked)
    context.does("create source", str(statement.name))
    for output in outputs:
        _add_output(session, source_id, told, output, context)
    check_free(session, progress, f"progress of source {statement.name}", hint="EXPOSE PROGRESS AS another name")
    check_name(progress)
    legacy_sources.add_progress(session, source_id, name_pair(progress))
    context.does("create progress", str(progress))
    note = "joins at the next tick" if told.shape == "single" else f"with {_listed(outputs)}"
    return done("CREATE SOURCE", statement.name, None if context.dry_run else source_id, context.dry_run, note)


def _listed(outputs: list[NamedOutput]) -> str:
    names = ", ".join(str(output.name) for output in outputs)
    return f"subsource{'s' if len(outputs) > 1 else ''} {names}"


def _add_output(session: Session, source_id: ItemId, told: LegacySpec, output: NamedOutput, context: Context) -> None:
    source = items.get_source_item(session, source_id)
    state = load_state(session, lock_source(session, source_id))
    arrival = arrival_plans.create(state, str(output.name), snapshot=True)
    context.decisions.append(Decision(source, state, arrival, {}))
    if told.shape == "single":
        legacy_sources.add_output(session, state, output.spec, arrival)
        return
    reference = written(stored_reference(output.spec))
    check_name(output.name)
    check_free(session, output.name, f"subsource of {reference}", hint=f"FOR TABLES ({reference} AS another name, …)")
    legacy_sources.add_subsource(session, state, name_pair(output.name), output.spec, arrival)
    context.does("create subsource", str(output.name), f"of {reference}")


# ── one that is there ─────────────────────────────────────────────────────────────────────────────────────────────────


def _same(
    session: Session, statement: sql.CreateSource, asked: LegacySpec, present: items.Item, context: Context
) -> Result:
    """IF NOT EXISTS: nothing is created and no upstream is asked. So the statement is compared with what is stored."""
    if not isinstance(present, items.SourceItem) or not statement.if_not_exists:
        raise NameTaken(present.display, present.kind, "source")
    references = _known(session, present)
    outputs = _outputs(statement, asked, references)
    told = described(statement.name, asked, outputs, progress_name(statement.name, asked))
    stored = present.spec.legacy
    is_now = None if stored is None else current(session, present, stored)
    found = differences(
        present.spec.model_copy(update={"legacy": None}), statement.spec.model_copy(update={"legacy": None})
    )
    if is_now is None:
        found.append("it has only tables")
    else:
        found += differences(is_now, told)
    output = legacy_sources.output_of(session, present.id)
    if output is not None and told.shape == "single":
        wanted = outputs[0].spec.model_copy(update={"details": output.spec.details})
        found += differences(output.spec, wanted)
    if found:
        raise SpecConflict(str(statement.name), "; ".join(found))
    sources.check_same_settings(statement, present)
    return done("CREATE SOURCE", statement.name, present.id, context.dry_run, "it exists")


def _known(session: Session, present: items.Item) -> list[ReferenceInfo]:
    """The stored references: those of the source's outputs with their columns, the others with their names only."""
    if not isinstance(present, items.SourceItem):
        return []
    made = {
        (t.spec.namespace, t.spec.reference): stored_reference(t.spec)
        for t in items.list_tables(session, present.id)
        if t.kind != "table"
    }
    offered = [(r.namespace, r.name) for r in list_references(session, present.id)]
    database = kind_of(present.spec).database
    return [made.get(key) or ReferenceInfo(*key, database=database) for key in dict.fromkeys((*offered, *made))]
