"""Runs parsed statements against the catalog: upstreams are asked first, then one transaction does all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.answers import Result, kind_of, name_pair, show_create, show_sources, show_tables
from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.catalog.models import SourceRow
from airflow_provider_mzshare.control.catalog.states import load_state, lock_source
from airflow_provider_mzshare.control.sql import statements as sql
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.errors import NameTaken, ReferenceMissing, SpecConflict, TransientError, UnknownItem
from airflow_provider_mzshare.storage.connections import ConnectionStore
from airflow_provider_mzshare.types.positions import Position
from airflow_provider_mzshare.types.specs import KafkaSourceSpec, SourceSettings


@dataclass(frozen=True)
class _Checked:
    """A statement with what its upstream said, before any transaction was opened."""

    statement: sql.Statement
    incarnation: str = ""
    start: Position | None = None
    """Where a new source begins, or a source still without tables: retention may have moved on since."""


@dataclass
class _Names:
    """Names as earlier statements of the script will have left them."""

    made: set[sql.QualifiedName] = field(default_factory=set)
    gone: set[sql.QualifiedName] = field(default_factory=set)

    def note(self, statement: sql.Statement) -> None:
        if isinstance(statement, (sql.CreateSource, sql.CreateTable)):
            self.made.add(statement.name)
        elif isinstance(statement, sql.DropItem):
            self.made.discard(statement.name)
            self.gone.add(statement.name)


class _DryRun(Exception):
    """Ends a transaction without keeping anything."""


def execute_script(catalog: Catalog, text: str, connections: ConnectionStore, *, dry_run: bool = False) -> list[Result]:
    """Run a script; with ``dry_run`` everything is checked and nothing is kept."""
    return list(run_script(catalog, text, connections, dry_run=dry_run))


def run_script(catalog: Catalog, text: str, connections: ConnectionStore, *, dry_run: bool = False) -> Iterator[Result]:
    """The same, each transaction's results as soon as it is committed."""
    transactions = sql.parse_script(text)
    if dry_run:
        # One transaction over all: later statements build on earlier ones that will not be there.
        whole = sql.Transaction(tuple(s for t in transactions for s in t.statements), explicit=True)
        transactions = (whole,) if whole.statements else ()
    for transaction in transactions:
        checked = list(_check_upstreams(catalog, transaction.statements, connections))
        with _transaction(catalog, dry_run) as session:
            results = [_apply(session, one, dry_run) for one in checked]
            if dry_run:
                raise _DryRun
        yield from results


@contextmanager
def _transaction(catalog: Catalog, dry_run: bool) -> Iterator[Session]:
    try:
        with catalog.write() as session:
            yield session
    except _DryRun:
        if not dry_run:
            raise


# ── before the transaction: what upstreams say ────────────────────────────────────────────────────────────────────────


def _check_upstreams(
    catalog: Catalog, statements: Sequence[sql.Statement], connections: ConnectionStore
) -> Iterator[_Checked]:
    names = _Names()
    for statement in statements:
        if isinstance(statement, sql.CreateSource):
            yield _check_new_source(catalog, statement, connections, names)
        elif isinstance(statement, sql.CreateTable):
            yield _check_new_table(catalog, statement, connections, names)
        else:
            yield _Checked(statement)
        names.note(statement)


def _check_new_source(
    catalog: Catalog, statement: sql.CreateSource, connections: ConnectionStore, names: _Names
) -> _Checked:
    present = _present(catalog, statement.name, names)
    if present is not None and not statement.if_not_exists:
        raise NameTaken(present.display, kind_of(present), "source")
    if present is not None or statement.name in names.made:
        return _Checked(statement)  # nothing will be made, so a broker that is away is no reason to fail
    with open_upstream(connections, statement.spec) as upstream:
        found = upstream.inspect(statement.spec.start)
    return _Checked(statement, found.info.incarnation, found.start)


def _check_new_table(
    catalog: Catalog, statement: sql.CreateTable, connections: ConnectionStore, names: _Names
) -> _Checked:
    """The first table of a source that began at the earliest record: look again where that is now."""
    source = _present(catalog, statement.source, names)
    if not isinstance(source, items.SourceItem) or source.spec.start.mode != "earliest":
        return _Checked(statement)
    if _present(catalog, statement.name, names) is not None or not _is_untouched(catalog, source):
        return _Checked(statement)
    with open_upstream(connections, source.spec) as upstream:
        upstream.check_identity(source.incarnation)
        return _Checked(statement, source.incarnation, upstream.resolve_start(source.spec.start))


def _present(catalog: Catalog, name: sql.QualifiedName, names: _Names) -> items.SourceItem | items.TableItem | None:
    if name in names.made or name in names.gone:
        return None
    with catalog.read() as session:
        return items.find(session, name_pair(name))


def _is_untouched(catalog: Catalog, source: items.SourceItem) -> bool:
    with catalog.read() as session:
        return not items.list_tables(session, source.id)


# ── inside the transaction ────────────────────────────────────────────────────────────────────────────────────────────


def _apply(session: Session, checked: _Checked, dry_run: bool) -> Result:
    statement = checked.statement
    if isinstance(statement, sql.CreateSource):
        return _create_source(session, statement, checked, dry_run)
    if isinstance(statement, sql.CreateTable):
        return _create_table(session, statement, checked, dry_run)
    if isinstance(statement, sql.AlterSourceSet):
        return _alter_source(session, statement, dry_run)
    if isinstance(statement, sql.DropItem):
        return _drop(session, statement, dry_run)
    if isinstance(statement, sql.ShowCreate):
        _existing(session, statement.kind, statement.name)
        return show_create(session, statement)
    return show_sources(session) if statement.what == "sources" else show_tables(session)


def _create_source(session: Session, statement: sql.CreateSource, checked: _Checked, dry_run: bool) -> Result:
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
    return _done("CREATE SOURCE", statement.name, source_id, dry_run, "it exists" if existed else "")


def _check_same_settings(statement: sql.CreateSource, present: items.SourceItem) -> None:
    """Of an existing source, against those that were written out."""
    is_now = present.settings.model_dump()
    asked = {field: value for field, value in statement.settings.items() if is_now[field] != value}
    if asked:
        found = sql.print_settings({field: is_now[field] for field in asked})
        remedy = sql.print_statement(sql.AlterSourceSet(statement.name, asked))
        raise SpecConflict(str(statement.name), f"it has {found}, not {sql.print_settings(asked)}", remedy=remedy)


def _create_table(session: Session, statement: sql.CreateTable, checked: _Checked, dry_run: bool) -> Result:
    source = items.find_source(session, name_pair(statement.source))
    existed = items.find(session, name_pair(statement.name)) is not None
    if checked.start is not None and not existed:
        _move_start(session, source, checked)
    table_id = items.create_table(
        session,
        name=name_pair(statement.name),
        source_id=source.id,
        spec=statement.to_spec(_reference(statement, source.spec)),
        if_not_exists=statement.if_not_exists,
    )
    return _done("CREATE TABLE", statement.name, table_id, dry_run, "it exists" if existed else "")


def _move_start(session: Session, source: items.SourceItem, checked: _Checked) -> None:
    items.lock_namespace(session)
    state = load_state(session, lock_source(session, source.id))
    untouched = not state.tables and state.last is None and not state.pending
    if untouched and checked.start is not None and state.incarnation == checked.incarnation:
        session.execute(update(SourceRow).where(SourceRow.id == source.id).values(start=checked.start))


def _reference(statement: sql.CreateTable, spec: KafkaSourceSpec) -> str:
    if statement.reference not in (None, spec.topic):
        raise ReferenceMissing(
            f"source {statement.source} has no reference {statement.reference!r}", hint=f'REFERENCE "{spec.topic}"'
        )
    return spec.topic


def _alter_source(session: Session, statement: sql.AlterSourceSet, dry_run: bool) -> Result:
    # Locked before it is read: two who change different settings must not undo each other.
    items.lock_namespace(session)
    source = items.find_source(session, name_pair(statement.name))
    lock_source(session, source.id)
    source = items.get_source_item(session, source.id)
    kept = {k: v for k, v in source.settings.model_dump().items() if k not in statement.reset}
    settings = SourceSettings.model_validate({**kept, **statement.settings})
    items.set_settings(session, source.id, settings)
    return _done("ALTER SOURCE", statement.name, source.id, dry_run)


def _drop(session: Session, statement: sql.DropItem, dry_run: bool) -> Result:
    command = f"DROP {statement.kind.upper()}"
    if statement.if_exists and items.find(session, name_pair(statement.name)) is None:
        return _done(command, statement.name, None, dry_run, "it does not exist")
    item = _existing(session, statement.kind, statement.name)
    if isinstance(item, items.TableItem):
        items.drop_table(session, item.id)
        return _done(command, statement.name, item.id, dry_run)
    gone = [str(sql.QualifiedName(*t.name)) for t in items.drop_source(session, item.id, cascade=statement.cascade)]
    note = f"with {'tables' if len(gone) > 1 else 'table'} {', '.join(gone)}" if gone else ""
    return _done(command, statement.name, item.id, dry_run, note)


def _existing(session: Session, kind: sql.Kind | None, name: sql.QualifiedName) -> items.SourceItem | items.TableItem:
    item = items.find(session, name_pair(name))
    if item is None or kind not in (None, kind_of(item)):
        raise UnknownItem(kind, str(name), kind_of(item) if item else None)
    return item


def _done(command: str, name: sql.QualifiedName, item_id: str | None, dry_run: bool, note: str = "") -> Result:
    # An id given in a dry run was never given.
    shown = None if dry_run and not note and command.startswith("CREATE") else item_id
    remarks = ", ".join(filter(None, (note, "dry run" if dry_run else "")))
    message = " ".join(filter(None, (command, str(name), shown, f"({remarks})" if remarks else "")))
    return Result(command, str(name), shown, message)
