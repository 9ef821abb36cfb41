"""ALTER SOURCE … REFRESH REFERENCES, and the statements that would make tables of what a source offers."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog.database.source_states import lock_source
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.references import (
    StoredReference,
    list_references,
    store_references,
)
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, some
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import MAX_NAME_BYTES, QualifiedName
from airflow_provider_mzshare.control.sql.printing import print_statement
from airflow_provider_mzshare.control.statements.answers import Result, done, full_name
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.errors import TerminalError


def refresh(session: Session, checked: Checked[sql.RefreshReferences], context: Context) -> Result:
    """The upstream was asked before; what it said takes the place of what was known."""
    items.lock_namespace(session)
    source = _asked(session, checked)
    if not isinstance(source, items.SourceItem) or checked.references is None:
        raise ChangedMeanwhile(f"source {checked.statement.source}")
    lock_source(session, source.id)
    before = {(r.namespace, r.name, r.columns) for r in list_references(session, source.id)}
    store_references(session, source.id, checked.references)
    after = {(r.namespace, r.name, r.columns) for r in list_references(session, source.id)}
    count = len(after)
    changed = len(before ^ after)
    note = f"{count} reference{'' if count == 1 else 's'}, {'the same as before' if not changed else 'changed'}"
    return done("ALTER SOURCE", full_name(source.name), source.id, context.dry_run, note)


def _asked(session: Session, checked: Checked[sql.RefreshReferences]) -> items.Item | None:
    """The source whose upstream was asked, or the source that this transaction has just created."""
    if checked.source_id is not None:
        return items.get_live_item(session, checked.source_id)
    name = checked.statement.source
    return items.find(session, ("public", name) if isinstance(name, str) else (name.schema, name.name))


def check_namespace(source: items.SourceItem, references: Collection[StoredReference], namespace: str) -> None:
    """Raise unless the source offers something in this schema."""
    known = sorted({reference.namespace for reference in references if reference.namespace is not None})
    if namespace not in known:
        hint = f"one of {some(known)}" if known else f"mzshare references {shlex.quote(source.display)}"
        raise TerminalError(f"source {source.display} has no references in a schema {namespace!r}", hint=hint)


def table_statements(
    session: Session, source: items.SourceItem, references: Collection[StoredReference]
) -> list[tuple[StoredReference, str]]:
    """For each reference the CREATE TABLE that would export it, under a name that is free."""
    taken: set[str] = set()
    return [(reference, _statement(session, source, reference, taken)) for reference in references]


def _statement(session: Session, source: items.SourceItem, reference: StoredReference, taken: set[str]) -> str:
    schema = source.name[0]
    name = _free_name(session, schema, reference.name, taken)
    taken.add(name)
    parts = (reference.name,) if reference.namespace is None else (reference.namespace, reference.name)
    table = sql.CreateTable(
        name=QualifiedName(schema, name),
        if_not_exists=False,
        source=QualifiedName(*source.name),
        reference=parts,
        format=kind_of(source.spec).default_format,
        envelope=kind_of(source.spec).own_envelope,
    )
    return f"{print_statement(table)};"


def _free_name(session: Session, schema: str, wanted: str, taken: Collection[str]) -> str:
    """The reference's own name, or the first of ``name_1``, ``name_2``, … that nobody has."""
    number, name = 0, _cut(wanted, "")
    while name in taken or items.find(session, (schema, name)) is not None:
        number += 1
        name = _cut(wanted, f"_{number}")
    return name


def _cut(name: str, end: str) -> str:
    """Cut the name so that it fits into the limit of bytes, in whole characters."""
    room = MAX_NAME_BYTES - len(end)
    return name.encode()[:room].decode(errors="ignore") + end
