"""Runs parsed statements against the catalog: upstreams are asked first, then one transaction does all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.answers import (
    Result,
    done,
    kind_of,
    name_pair,
    show_create,
    show_sources,
    show_tables,
)
from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.catalog.states import lock_source
from airflow_provider_mzshare.control.sql import statements as sql
from airflow_provider_mzshare.control.statement_checks import Checked, Checks
from airflow_provider_mzshare.control.table_statements import Applied, Decision, alter_table, create_table, with_plans
from airflow_provider_mzshare.errors import SpecConflict, TransientError, UnknownItem
from airflow_provider_mzshare.storage.connections import ConnectionStore
from airflow_provider_mzshare.types.positions import Position
from airflow_provider_mzshare.types.specs import SourceSettings


class _DryRun(Exception):
    """Ends a transaction without keeping anything."""


def execute_script(catalog: Catalog, text: str, connections: ConnectionStore, *, dry_run: bool = False) -> list[Result]:
    """Run a script; with ``dry_run`` everything is checked and nothing is kept."""
    return list(run_script(catalog, text, connections, dry_run=dry_run))


def run_script(catalog: Catalog, text: str, connections: ConnectionStore, *, dry_run: bool = False) -> Iterator[Result]:
    """The same, each transaction's results as soon as it is committed."""
    groups = list(enumerate(transaction.statements for transaction in sql.parse_script(text)))
    if dry_run:
        # One transaction over all: later statements build on earlier ones that will not be there.
        yield from _run(catalog, groups, connections, dry_run=True)
        return
    for group in groups:
        yield from _run(catalog, [group], connections, dry_run=False)


def _run(
    catalog: Catalog,
    groups: Sequence[tuple[int, Sequence[sql.Statement]]],
    connections: ConnectionStore,
    *,
    dry_run: bool,
) -> list[Result]:
    """In one transaction. What was written as several is planned as several all the same."""
    numbers = [number for number, statements in groups for _ in statements]
    checks = Checks(catalog, connections, looks=dry_run)
    checked = list(checks.run([statement for _, statements in groups for statement in statements]))
    applied: list[Applied] = []
    if not checked:
        return []
    with _transaction(catalog, dry_run) as session:
        for number, one in zip(numbers, checked, strict=True):
            applied.append(Applied(number, *_apply(session, one, dry_run)))
        if dry_run:
            raise _DryRun
    return with_plans(applied)


@contextmanager
def _transaction(catalog: Catalog, dry_run: bool) -> Iterator[Session]:
    try:
        with catalog.write() as session:
            yield session
    except _DryRun:
        if not dry_run:
            raise


# ── inside the transaction ────────────────────────────────────────────────────────────────────────────────────────────


def _apply(session: Session, checked: Checked, dry_run: bool) -> tuple[Result, Decision | None]:
    statement = checked.statement
    if isinstance(statement, sql.CreateTable):
        return create_table(session, statement, checked, dry_run)
    if isinstance(statement, sql.AlterTable):
        return alter_table(session, statement, checked, dry_run)
    if isinstance(statement, sql.CreateSource):
        return _create_source(session, statement, checked, dry_run), None
    return _apply_plain(session, statement, dry_run), None


def _apply_plain(
    session: Session, statement: sql.AlterSourceSet | sql.DropItem | sql.Show | sql.ShowCreate, dry_run: bool
) -> Result:
    if isinstance(statement, sql.AlterSourceSet):
        return _alter_source(session, statement, dry_run)
    if isinstance(statement, sql.DropItem):
        return _drop(session, statement, dry_run)
    if isinstance(statement, sql.ShowCreate):
        _existing(session, statement.kind, statement.name)
        return show_create(session, statement)
    return show_sources(session) if statement.what == "sources" else show_tables(session)


def _create_source(session: Session, statement: sql.CreateSource, checked: Checked, dry_run: bool) -> Result:
    items.lock_namespace(session)
    existed = items.find(session, name_pair(statement.name)) is not None
    if not existed and checked.start is None:
        raise TransientError(f"source {statement.name} was dropped while this ran", hint="the same statement again")
    source_id = items.create_source(
        session,
        name=name_pair(statement.name),
        spec=statement.spec,
        settings=SourceSettings.model_validate(dict(statement.settings)),
        incarnation=checked.incarnation,
        start=checked.start or Position(),
        if_not_exists=statement.if_not_exists,
    )
    if existed:
        _check_same_settings(statement, items.get_source_item(session, source_id))
    shown = source_id if existed or not dry_run else None  # an id given in a dry run was never given
    return done("CREATE SOURCE", statement.name, shown, dry_run, "it exists" if existed else "")


def _check_same_settings(statement: sql.CreateSource, present: items.SourceItem) -> None:
    """Of an existing source, against those that were written out."""
    is_now = present.settings.model_dump()
    asked = {field: value for field, value in statement.settings.items() if is_now[field] != value}
    if asked:
        found = sql.print_settings({field: is_now[field] for field in asked})
        remedy = sql.print_statement(sql.AlterSourceSet(statement.name, asked))
        raise SpecConflict(str(statement.name), f"it has {found}, not {sql.print_settings(asked)}", remedy=remedy)


def _alter_source(session: Session, statement: sql.AlterSourceSet, dry_run: bool) -> Result:
    # Locked before it is read: two who change different settings must not undo each other.
    items.lock_namespace(session)
    source = items.find_source(session, name_pair(statement.name))
    lock_source(session, source.id)
    source = items.get_source_item(session, source.id)
    kept = {k: v for k, v in source.settings.model_dump().items() if k not in statement.reset}
    settings = SourceSettings.model_validate({**kept, **statement.settings})
    items.set_settings(session, source.id, settings)
    return done("ALTER SOURCE", statement.name, source.id, dry_run)


def _drop(session: Session, statement: sql.DropItem, dry_run: bool) -> Result:
    command = f"DROP {statement.kind.upper()}"
    if statement.if_exists and items.find(session, name_pair(statement.name)) is None:
        return done(command, statement.name, None, dry_run, "it does not exist")
    item = _existing(session, statement.kind, statement.name)
    if isinstance(item, items.TableItem):
        items.drop_table(session, item.id)
        return done(command, statement.name, item.id, dry_run)
    gone = [str(sql.QualifiedName(*t.name)) for t in items.drop_source(session, item.id, cascade=statement.cascade)]
    note = f"with {'tables' if len(gone) > 1 else 'table'} {', '.join(gone)}" if gone else ""
    return done(command, statement.name, item.id, dry_run, note)


def _existing(session: Session, kind: sql.Kind | None, name: sql.QualifiedName) -> items.SourceItem | items.TableItem:
    item = items.find(session, name_pair(name))
    if item is None or kind not in (None, kind_of(item)):
        raise UnknownItem(kind, str(name), kind_of(item) if item else None)
    return item
