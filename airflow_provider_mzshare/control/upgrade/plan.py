"""What a migration, its rollback and its end do, as data: pure functions from definitions to labelled steps.

A step holds the definitions after it. The executor writes, step by step, what differs from the step before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from airflow_provider_mzshare.control.catalog.objects.definitions import Comment, Definitions, Table, View
from airflow_provider_mzshare.control.upgrade.column_options import copied_options
from airflow_provider_mzshare.control.upgrade.source_names import IsTaken, source_name
from airflow_provider_mzshare.control.views.resolving import redirected

Action = Literal["migrate", "rollback", "finalize"]
Change = Callable[[Definitions], Definitions]

LABELS: dict[Action, tuple[str, ...]] = {
    "migrate": (
        "migrate_planned", "migrate_options_copied", "migrate_tables_made", "migrate_source_renamed",
        "migrate_table_made", "migrate_dependents_moved", "migrate_source_stripped", "migrate_noted",
        "migrate_committed",
    ),
    "rollback": (
        "rollback_planned", "rollback_dependents_moved", "rollback_names_returned", "rollback_source_restored",
        "rollback_noted", "rollback_committed",
    ),
    "finalize": (
        "finalize_planned", "finalize_dependents_moved", "finalize_alias_dropped", "finalize_noted",
        "finalize_committed",
    ),
}  # fmt: skip
"""All crash points: those of the steps, and those around them. A source passes only the points of its own steps."""

NO_COLLECTION = "the source itself has no collection to drop: its progress is read from its ticks"


@dataclass(frozen=True)
class Step:
    """``label`` is also the name of the crash point that is passed after it."""

    label: str
    text: str
    after: Definitions


@dataclass(frozen=True)
class Plan:
    action: Action
    before: Definitions
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    migration: tuple[int, str] | None = None
    """The newest migration of the source when this was planned: its number and state."""

    @property
    def after(self) -> Definitions:
        return self.steps[-1].after if self.steps else self.before


def build(action: Action, before: Definitions, changes: list[tuple[str, str, Change]], notes: list[str]) -> Plan:
    """Apply the changes one by one. Changes that have no effect are left out."""
    steps: list[Step] = []
    now = before
    for label, text, change in changes:
        after = change(now)
        if after != now:
            steps.append(Step(label, text, after))
        now = after
    return Plan(action, before, tuple(steps), tuple(notes))


def plan_migration(before: Definitions, is_taken: IsTaken) -> Plan:
    """From an old-style source to a source with tables."""
    if before.output is not None:
        return _plan_single(before, before.output, is_taken)
    changes: list[tuple[str, str, Change]] = [
        ("migrate_options_copied", "copy the column options from the source to its subsources", _copy_options),
        ("migrate_tables_made", "each subsource becomes a table: same name, id, options, collections", _make_tables),
        ("migrate_source_stripped", "remove what moved to the tables from the source's statement", _strip),
    ]
    return build("migrate", before, changes, [NO_COLLECTION])


def _plan_single(before: Definitions, output: str, is_taken: IsTaken) -> Plan:
    new_name = source_name(before.source.name, is_taken)
    old_name, source_id = before.source.name, before.source.id

    def rename(now: Definitions) -> Definitions:
        return now.model_copy(update={"source": now.source.model_copy(update={"name": new_name})})

    def make_table(now: Definitions) -> Definitions:
        taken_over = {"kind": "table", "name": old_name}
        tables = (t.model_copy(update=taken_over) if t.id == output else t for t in now.tables)
        return now.model_copy(update={"tables": tuple(tables), "output": None})

    def move_dependents(now: Definitions) -> Definitions:
        return move_references(now, {source_id: output})

    changes: list[tuple[str, str, Change]] = [
        ("migrate_source_renamed", "the source gets another name; its id stays", rename),
        ("migrate_table_made", "the table gets the old name, and the collections with their history", make_table),
        ("migrate_dependents_moved", "views that read the source by its id now read the table", move_dependents),
        ("migrate_source_stripped", "remove what moved to the table from the source's statement", _strip),
    ]
    return build("migrate", before, changes, [])


def plan_finalize(before: Definitions) -> Plan:
    """The end of a migration: the old-style name of the progress is dropped. After this there is no rollback."""
    alias = before.progress
    if alias is None:
        return Plan("finalize", before, ())

    def move_dependents(now: Definitions) -> Definitions:
        return move_references(now, {alias.id: now.source.id})

    changes: list[tuple[str, str, Change]] = [
        (
            "finalize_dependents_moved",
            "views that read the old-style progress name by its id now read the source",
            move_dependents,
        ),
        ("finalize_alias_dropped", "drop the old-style name of the progress", _without_progress),
    ]
    return build("finalize", before, changes, [])


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _copy_options(now: Definitions) -> Definitions:
    legacy = now.source.spec.legacy
    if legacy is None:
        return now
    only = sum(table.kind == "subsource" for table in now.tables) == 1
    tables = tuple(copied_options(legacy, t, only=only) if t.kind == "subsource" else t for t in now.tables)
    return now.model_copy(update={"tables": tables})


def _make_tables(now: Definitions) -> Definitions:
    return now.model_copy(update={"tables": tuple(_as_table(t) for t in now.tables)})


def _as_table(table: Table) -> Table:
    return table.model_copy(update={"kind": "table"}) if table.kind == "subsource" else table


def _strip(now: Definitions) -> Definitions:
    spec = now.source.spec.model_copy(update={"legacy": None})
    return now.model_copy(update={"source": now.source.model_copy(update={"spec": spec})})


def _without_progress(now: Definitions) -> Definitions:
    return now.model_copy(update={"progress": None})


def move_references(now: Definitions, targets: Mapping[str, str]) -> Definitions:
    """Let views and comments on columns refer to other ids, all at once.

    A column has one comment: an existing one stays.
    """
    views = tuple(_moved_view(view, targets) for view in now.views)
    moved = [_moved_comment(comment, targets) for comment in now.comments]
    kept = {(c.object_id, c.column): c for c in moved}
    kept |= {(c.object_id, c.column): c for c in now.comments if c in moved}
    return now.model_copy(update={"views": views, "comments": tuple(kept.values())})


def _moved_view(view: View, targets: Mapping[str, str]) -> View:
    if not targets.keys() & set(view.reads):
        return view
    moved = redirected(view.query, targets)
    return view.model_copy(update={"query": moved.text, "reads": moved.reads})


def _moved_comment(comment: Comment, targets: Mapping[str, str]) -> Comment:
    return comment.model_copy(update={"object_id": targets.get(comment.object_id, comment.object_id)})
