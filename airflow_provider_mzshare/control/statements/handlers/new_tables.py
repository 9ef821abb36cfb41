"""CREATE TABLE … FROM SOURCE inside the caller's transaction: checked one by one, written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.database.models import SourceRow
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.objects import flags, items
from airflow_provider_mzshare.control.catalog.objects.item_names import add_items
from airflow_provider_mzshare.control.catalog.objects.lookup_many import find_all
from airflow_provider_mzshare.control.catalog.objects.references import list_references
from airflow_provider_mzshare.control.catalog.objects.table_rows import NewTable, add_tables
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile, FlagOff
from airflow_provider_mzshare.control.lifecycle import table_plans
from airflow_provider_mzshare.control.lifecycle.table_plans import Arrival
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context, Decision
from airflow_provider_mzshare.control.statements.purification import purify, resolve, stored_reference, written
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked, is_untouched
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.errors import NameTaken, SpecConflict

_JOINS = "joins at the next tick"
Made = Mapping[items.Name, tuple[ItemId, BackfillId | None]]


def create_table(session: Session, checked: Checked[sql.CreateTable], context: Context) -> Result:
    return create_tables(session, [checked], [context])[0]


def create_tables(
    session: Session, run: Sequence[Checked[sql.CreateTable]], contexts: Sequence[Context]
) -> Sequence[Result]:
    """Of different names, none of which is the source of another: as one after the other, for the price of one."""
    items.lock_namespace(session)
    if not flags.is_on(session, flags.ENABLE_TABLES):
        raise FlagOff(flags.ENABLE_TABLES, "CREATE TABLE … FROM SOURCE")
    names = {name_pair(name) for one in run for name in (one.statement.name, one.statement.source)}
    making = _Making(session, find_all(session, names))
    asked = [making.ask(checked) for checked in run]
    made = making.write()
    return [_told(one, made, context) for one, context in zip(asked, contexts, strict=True)]


@dataclass(frozen=True)
class _Asked:
    """A statement whose checks are done."""

    name: items.Name
    statement: sql.CreateTable
    spec: TableSpec
    decision: Decision
    present: items.TableItem | None
    """The table, if it is there already."""


def _told(asked: _Asked, made: Made, context: Context) -> Result:
    name = asked.statement.name
    if asked.present is not None:
        return done("CREATE TABLE", name, asked.present.id, context.dry_run, "it exists")
    table_id, backfill_id = made[asked.name]
    context.decisions.append(asked.decision)
    note = what_next(asked.decision.arrival, backfill_id, asked.decision.source, context.dry_run)
    return done("CREATE TABLE", name, None if context.dry_run else table_id, context.dry_run, note)


class _Making:
    """:param found: what bears the names that are used; the lock of the namespace keeps it so."""

    def __init__(self, session: Session, found: Mapping[items.Name, items.Item]) -> None:
        self._session, self._found = session, found
        self._states: dict[ItemId, SourceState] = {}
        self._offered: dict[ItemId, list[ReferenceInfo]] = {}
        self._new: list[_Asked] = []
        self._begun: set[ItemId] = set()
        """Sources that get a table here: where they begin is settled."""

    def ask(self, checked: Checked[sql.CreateTable]) -> _Asked:
        statement = checked.statement
        of, name = name_pair(statement.source), name_pair(statement.name)
        source, present = items.as_source(of, self._found.get(of)), self._found.get(name)
        if source.id not in self._states:
            self._states[source.id] = load_state(self._session, lock_source(self._session, source.id))
        if present is None:
            check_name(statement.name)
            if source.id not in self._begun:
                self._states[source.id] = move_start(self._session, self._states[source.id], checked)
            table, spec = None, new_spec(statement, source, checked)
        else:
            table = _same_kind(statement, present)
            spec = self._same_spec(statement, source, table)
            items.check_same_table(self._session, table, source.id, spec)
        state = self._states[source.id]
        arrival = table_plans.create(state, str(statement.name), snapshot=statement.snapshot)
        asked = _Asked(name, statement, spec, Decision(source, state, arrival, checked.sizes), table)
        if table is None:
            self._new.append(asked)
            self._begun.add(source.id)
        return asked

    def _same_spec(self, statement: sql.CreateTable, source: items.SourceItem, present: items.TableItem) -> TableSpec:
        """Of a table that is there, by what it was made from then: no upstream is asked, and no drift is seen."""
        if present.source_id != source.id:
            return present.spec
        own = stored_reference(present.spec)
        if source.id not in self._offered:
            stored, database = list_references(self._session, source.id), kind_of(source.spec).database
            self._offered[source.id] = [ReferenceInfo(r.namespace, r.name, database=database) for r in stored]
        known = [own, *(other for other in self._offered[source.id] if written(other) != written(own))]
        found = resolve(statement.reference, known, str(statement.source))
        if found is not own:
            raise SpecConflict(str(statement.name), f"its reference is {written(own)}, not {written(found)}")
        return purify(statement, source.spec, own).model_copy(update={"details": present.spec.details})

    def write(self) -> Made:
        """All that are new, with ids in the order of their statements."""
        if not self._new:
            return {}
        ids = add_items(self._session, "table", [asked.name for asked in self._new])
        by_source: dict[ItemId, list[tuple[_Asked, ItemId]]] = {}
        for asked, table_id in zip(self._new, ids, strict=True):
            by_source.setdefault(asked.decision.source.id, []).append((asked, table_id))
        made: dict[items.Name, tuple[ItemId, BackfillId | None]] = {}
        for source_id, tables in by_source.items():
            rows = [NewTable(table_id, one.spec, one.decision.arrival.way != "now") for one, table_id in tables]
            backfill_id = add_tables(self._session, self._states[source_id], rows)
            made |= {asked.name: (table_id, backfill_id) for asked, table_id in tables}
        return made


def _same_kind(statement: sql.CreateTable, present: items.Item) -> items.TableItem:
    if not isinstance(present, items.TableItem) or present.kind != "table" or not statement.if_not_exists:
        raise NameTaken(present.display, present.kind, "table")
    return present


def new_spec(statement: sql.CreateTable, source: items.SourceItem, checked: Checked[Any]) -> TableSpec:
    """Resolved against what the upstream said; it must have been this source that was asked."""
    if checked.references is None or checked.source_id not in (None, source.id):
        raise ChangedMeanwhile(f"source {statement.source}")
    reference = resolve(statement.reference, checked.references, str(statement.source))
    return purify(statement, source.spec, reference)


def move_start(session: Session, state: SourceState, checked: Checked[Any]) -> SourceState:
    """The first table decides where a source begins that was to begin at the earliest record."""
    if checked.start is None or not is_untouched(state) or state.incarnation != checked.incarnation:
        return state
    session.execute(update(SourceRow).where(SourceRow.id == state.source_id).values(start=checked.start))
    return replace(state, start=checked.start)


def what_next(arrival: Arrival, backfill_id: BackfillId | None, source: items.SourceItem, dry_run: bool) -> str:
    """What happens now. An id given in a dry run was never given."""
    if arrival.way != "backfill":
        return _JOINS
    return "gets a backfill" if dry_run else f"backfill {backfill_id}: {hints.start(source.name)} starts it"
