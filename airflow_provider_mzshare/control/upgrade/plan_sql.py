"""A plan in the words of SQL: the statement of each object before and after, and the difference for people."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mzshare.control.catalog.objects.definitions import (
    Definitions,
    Item,
    Progress,
    Source,
    Table,
    View,
)
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.printing import print_create_table, print_statement, reference_parts
from airflow_provider_mzshare.control.statements.legacy.outputs import clauses_of
from airflow_provider_mzshare.control.upgrade.plan import Plan
from airflow_provider_mzshare.control.views.readable import PROGRESS_COLUMNS
from airflow_provider_mzshare.control.views.resolving import print_named
from airflow_provider_mzshare.core.specs import ColumnSpec, SourceSettings

SAME_ROWS = "same text, reads the same rows under another id"
_DONE = {"migrate": "migrate", "rollback": "roll back", "finalize": "finalize"}


@dataclass(frozen=True)
class ObjectChange:
    """One object, before and after. A hidden output has no name and no statement; so has a dropped object, after."""

    id: str
    kind_before: str | None
    kind_after: str | None
    name_before: Name | None
    name_after: Name | None
    before: str | None
    after: str | None
    redirected: bool = False
    """The text is the same, but what it reads has another id."""

    @property
    def changed(self) -> bool:
        return (self.kind_before, self.name_before, self.before) != (self.kind_after, self.name_after, self.after)


def object_changes(plan: Plan) -> list[ObjectChange]:
    """The changes of all objects of the source; also lists objects that do not change."""
    ids = dict.fromkeys(item.id for state in (plan.before, plan.after) for item in state.items())
    return [_object_change(item_id, plan.before, plan.after) for item_id in ids]


def _object_change(item_id: str, before: Definitions, after: Definitions) -> ObjectChange:
    was, becomes = (_shown(state, item_id) for state in (before, after))
    return ObjectChange(
        id=item_id,
        kind_before=was.kind if was else None,
        kind_after=becomes.kind if becomes else None,
        name_before=was.name if was else None,
        name_after=becomes.name if becomes else None,
        before=statement_of(before, was) if was else None,
        after=statement_of(after, becomes) if becomes else None,
        redirected=isinstance(was, View) and isinstance(becomes, View) and was.query != becomes.query,
    )


def _shown(state: Definitions, item_id: str) -> Item | None:
    return None if item_id == state.output else state.item(item_id)


def statement_of(state: Definitions, item: Item) -> str:
    """What SHOW CREATE says of it."""
    name, source = QualifiedName(*item.name), QualifiedName(*state.source.name)
    if isinstance(item, Table) and item.kind == "table":
        return f"{print_create_table(name, source, item.spec)};"
    return f"{print_statement(_statement(state, item, name, source))};"


def _statement(state: Definitions, item: Item, name: QualifiedName, source: QualifiedName) -> sql.Statement:
    if isinstance(item, Source):
        return _create_source(state)
    if isinstance(item, View):
        return sql.CreateView(name, False, print_named(item.query, state.names().__getitem__))
    if isinstance(item, Progress):
        columns = tuple(ColumnSpec(name=column.name, type=column.type) for column in PROGRESS_COLUMNS)
        return sql.CreateSubsource(name, columns, source, ())
    assert isinstance(item, Table), item.id
    spec = item.spec
    return sql.CreateSubsource(
        name, spec.columns, source, reference_parts(spec), spec.text_columns, spec.exclude_columns
    )


def _create_source(state: Definitions) -> sql.CreateSource:
    source, output = state.source, state.item(state.output or "")
    usual = SourceSettings().model_dump()
    settings = {k: v for k, v in source.settings.model_dump().items() if v != usual[k]}
    decoded = clauses_of(output.spec) if isinstance(output, Table) else None
    connection = getattr(source.spec, "connection", None)
    return sql.CreateSource(QualifiedName(*source.name), False, connection, source.spec, settings, decoded)


# ── for people ────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_text(plan: Plan) -> str:
    """The steps, and what each statement was and becomes."""
    source = plan.before.source
    lines = [f"{_DONE[plan.action]} source {display_name(source.name)} ({source.id}):"]
    lines += [f"  {number}. {step.text}" for number, step in enumerate(plan.steps, start=1)]
    lines += [f"  note: {note}" for note in plan.notes]
    for change in object_changes(plan):
        lines += ["", *_diff(change)]
    return "\n".join(lines)


def _diff(change: ObjectChange) -> list[str]:
    if not change.changed:
        stays = SAME_ROWS if change.redirected else "stays as it is"
        return [f"  {_title(change.kind_after, change.name_after, change.id)}: {stays}"]
    lines = [f"  {_heading(change)}"]
    if change.before == change.after:
        return [*lines, f"      {change.after}"]
    lines += [f"    - {change.before}"] if change.before else []
    return [*lines, *([f"    + {change.after}"] if change.after else [])]


def _heading(change: ObjectChange) -> str:
    was = _title(change.kind_before, change.name_before, change.id)
    becomes = _title(change.kind_after, change.name_after, change.id)
    if change.name_before is None:
        return f"new: {becomes}"
    if change.name_after is None:
        return f"gone: {was}"
    return was if was == becomes else f"{was} becomes {becomes}"


def _title(kind: str | None, name: Name | None, item_id: str) -> str:
    return f"{kind} {display_name(name)} ({item_id})" if name else item_id
