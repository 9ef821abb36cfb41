"""The rollback of a migration: the definitions as they were, unless a later change makes that impossible."""

from __future__ import annotations

from typing import Any, TypeVar

from airflow_provider_mzshare.control.catalog.objects.definitions import Definitions, Item, Table, View
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.definition_errors import CannotRollBack
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.legacy.outputs import NamedOutput, described
from airflow_provider_mzshare.control.upgrade.plan import Change, Plan, build, move_references
from airflow_provider_mzshare.control.upgrade.source_names import IsTaken

_Item = TypeVar("_Item", bound=Item)


def plan_rollback(now: Definitions, before: Definitions, left: Definitions, is_taken: IsTaken) -> Plan:
    """:param before: what the migration found. :param left: what it left; ``now`` is the present state of that."""
    found, before = before, _in_present_schemas(before, now)
    _check(now, before, left, is_taken)
    restored = _restored(before, renamed=found != before)
    changes: list[tuple[str, str, Change]] = [
        (
            "rollback_dependents_moved",
            "views that read the table by its id now read the source",
            _returned(before, left),
        ),
        # All at once: since the migration, names may have been swapped among them.
        (
            "rollback_names_returned",
            "the tables become outputs of the source again, under the names from before",
            _named(before),
        ),
        ("rollback_source_restored", "the source's statement names its outputs again", restored),
    ]
    return build("rollback", now, changes, _notes(now, before))


def _in_present_schemas(before: Definitions, now: Definitions) -> Definitions:
    """An item stays in its schema, which may have been renamed."""
    update: dict[str, Any] = {"source": _in_present_schema(before.source, now)}
    update["tables"] = tuple(_in_present_schema(t, now) if t.kind == "subsource" else t for t in before.tables)
    if before.progress:
        update["progress"] = _in_present_schema(before.progress, now)
    return before.model_copy(update=update)


def _in_present_schema(item: _Item, now: Definitions) -> _Item:
    present = now.item(item.id)
    return item.model_copy(update={"name": (present.name[0], item.name[1])}) if present else item


# ── what stands in the way ────────────────────────────────────────────────────────────────────────────────────────────


def _check(now: Definitions, before: Definitions, left: Definitions, is_taken: IsTaken) -> None:
    source = display_name(before.source.name)
    if before.progress is not None and now.progress is None:
        raise CannotRollBack(source, f"its progress name {display_name(before.progress.name)} was dropped since")
    present = {table.id: table for table in now.tables}
    if before.output is not None and before.output not in present:
        raise CannotRollBack(source, f"table {source} ({before.output}) was dropped since")
    parts = [table.id for table in before.tables if table.kind != "table"]
    if not present.keys() & set(parts):
        raise CannotRollBack(source, "all its former subsources were dropped since")
    for table in left.tables:
        _check_table(source, table, present.get(table.id), before)
    ours = {item.name for item in now.items()}
    for item in _returning(now, before):
        if item.name not in ours and is_taken(item.name):
            raise CannotRollBack(source, f"the name {display_name(item.name)} was taken by something else since")
    _check_own_names(source, now, before)


def _returning(now: Definitions, before: Definitions) -> list[Item]:
    """Items that get their old names back."""
    named = [before.source, *(t for t in before.tables if t.kind != "table"), before.progress]
    return [item for item in named if item is not None and now.item(item.id)]


def _check_table(source: str, left: Table, now: Table | None, before: Definitions) -> None:
    """An old-style output has no options of its own: it could not keep a change made since the migration."""
    was = before.item(left.id)
    if now is not None and was is not None and was.kind != "table" and now.spec != left.spec:
        raise CannotRollBack(source, f"table {display_name(now.name)} ({now.id}) was changed since")


def _check_own_names(source: str, now: Definitions, before: Definitions) -> None:
    """Objects that were created or renamed since may have a name that must be given back."""
    names = {item.name: item.id for item in _returning(now, before)}
    for item in now.items():
        if names.get(item.name, item.id) != item.id and item.id not in names.values():
            raise CannotRollBack(source, f"the name {display_name(item.name)} was taken by {item.kind} {item.id} since")


def _notes(now: Definitions, before: Definitions) -> list[str]:
    present = {item.id for item in now.items()}
    return [
        f"{table.kind} {display_name(table.name)} ({table.id}) was dropped since, and does not come back"
        for table in before.tables
        if table.kind == "subsource" and table.id not in present
    ]


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _returned(before: Definitions, left: Definitions) -> Change:
    """Views that are unchanged since the migration get their old text; others are changed to read the same rows."""
    source, output, progress = before.source.id, before.output, before.progress

    def change(now: Definitions) -> Definitions:
        back = {source: progress.id} if progress else {}
        moved = move_references(now, {**back, **({output: source} if output else {})})
        views = tuple(_view(was, is_now, before, left) for was, is_now in zip(now.views, moved.views, strict=True))
        return moved.model_copy(update={"views": views})

    return change


def _view(was: View, moved: View, before: Definitions, left: Definitions) -> View:
    migrated, original = left.item(was.id), before.item(was.id)
    if isinstance(migrated, View) and isinstance(original, View) and was.query == migrated.query:
        return moved.model_copy(update={"query": original.query, "reads": original.reads})
    return moved


def _named(before: Definitions) -> Change:
    was = {table.id: table for table in before.tables if table.kind != "table"}

    def change(now: Definitions) -> Definitions:
        update = {
            "source": now.source.model_copy(update={"name": before.source.name}),
            "tables": tuple(was.get(table.id, table) for table in now.tables),
            "progress": before.progress or now.progress,
            "output": before.output,
        }
        return now.model_copy(update=update)

    return change


def _restored(before: Definitions, *, renamed: bool) -> Change:
    def change(now: Definitions) -> Definitions:
        legacy = before.source.spec.legacy
        kept = [table for table in now.tables if table.kind != "table"]
        lost = [table for table in before.tables if table.kind != "table" and table not in kept]
        if legacy is not None and (lost or renamed):
            named = [NamedOutput(QualifiedName(*_known(now, table)), table.spec) for table in kept]
            shown = QualifiedName(*(now.progress or now.source).name)
            legacy = described(QualifiedName(*now.source.name), legacy, named, shown, listed=bool(lost))
        spec = now.source.spec.model_copy(update={"legacy": legacy})
        return now.model_copy(update={"source": now.source.model_copy(update={"spec": spec})})

    return change


def _known(now: Definitions, table: Table) -> Name:
    return now.source.name if table.kind == "output" else table.name
