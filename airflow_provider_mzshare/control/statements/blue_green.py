"""Replaces one table by another, in steps that can be repeated: choose the names, swap once, drop the table that lost.

Ids show whether a step was done already: a swap that is repeated must not swap back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.dependents import leaving_with
from airflow_provider_mzshare.control.catalog.objects.drops import drop_items
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, last_item_id, lock_namespace
from airflow_provider_mzshare.control.catalog.objects.renames import rename_item, swap_items
from airflow_provider_mzshare.control.catalog.objects.schemas import Bearer
from airflow_provider_mzshare.control.catalog.queries.standings import standings
from airflow_provider_mzshare.control.definition_errors import StillUsed
from airflow_provider_mzshare.control.hints import command
from airflow_provider_mzshare.control.lifecycle.swap_rule import Taking, check_takings
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import full_name
from airflow_provider_mzshare.core.ids import ItemId, is_item_id
from airflow_provider_mzshare.errors import TerminalError

NEXT = "__next"
OLD = "__old_"


@dataclass(frozen=True)
class SwapPlan:
    """Names are full and written as in SQL.

    :param table: the name that readers use. :param other: the table that is to have it.
    :param keep_as: the replaced table's name until it is dropped; ``kept_for`` makes this name unique to the swap.
    :param last_id: the newest id when this was planned: tables that are created for the swap have newer ids.
    :param views: views that read the replaced table: they continue to read it.
    :param source: the source of the replaced one. :param reference: its reference there, in parts.
    :param key_format: how its keys are decoded; empty where it says nothing of them.
    """

    table: str
    old_id: str
    other: str
    keep_as: str
    last_id: str
    views: tuple[str, ...]
    source: str
    reference: tuple[str, ...]
    format: str
    key_format: str
    envelope: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "views": list(self.views), "reference": list(self.reference)}


@dataclass(frozen=True)
class Swapped:
    """:param changed: False if the swap had been done before."""

    table: str
    new_id: str
    old_id: str | None
    keep_as: str
    changed: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_swap(catalog: Catalog, table: str, other: str | None = None) -> SwapPlan:
    """Plan to replace ``table`` by a table that does not exist yet.

    :param other: the new table's name. It must be free, because the table is dropped if a step fails. By default it
        is the table's own name and ``__next``.
    """
    name = typed_name(table)
    new = typed_name(other) if other else QualifiedName(name.schema, f"{name.name}{NEXT}")
    with catalog.read() as session:
        if (taken := lookup.find(session, _pair(new))) is not None:
            raise TerminalError(
                f"a {taken.kind} {new} exists already, and would be mistaken for the new {name}",
                hint=f"another name for the new table, or drop the {taken.kind} that has this one",
            )
        return _plan(session, name, new)


def _plan(session: Session, name: QualifiedName, other: QualifiedName) -> SwapPlan:
    present = _own_table(session, name)
    views, spec = _views_on(session, present), present.spec
    return SwapPlan(
        table=str(name),
        old_id=present.id,
        other=str(other),
        keep_as=str(_kept_name(name, present.id)),
        last_id=last_item_id(session),
        views=tuple(full_name(view.name) for view in views),
        source=full_name(lookup.get_source_item(session, present.source_id).name),
        reference=tuple(part for part in (spec.namespace, spec.reference) if part is not None),
        format=spec.format,
        key_format=spec.key_format or "",
        envelope=spec.envelope,
    )


def _own_table(session: Session, name: QualifiedName) -> lookup.TableItem:
    """The table of this name. Outputs of an old-style source are refused: their names are part of its statement."""
    found = lookup.find_table(session, _pair(name))
    if found.kind != "table":
        source = lookup.get_source_item(session, found.source_id)
        raise TerminalError(
            f"{name} is an output of the old-style source {source.display}: only tables can be swapped",
            hint=command("migrate", source.display),
        )
    return found


def kept_for(keep_as: str, new_id: str) -> str:
    """A name for the replaced table that no other swap uses: a later drop must not meet the table of another swap."""
    name = typed_name(keep_as)
    return str(QualifiedName(name.schema, f"{name.name}_{new_id}"))


def _kept_name(name: QualifiedName, item_id: ItemId) -> QualifiedName:
    return QualifiedName(name.schema, f"{name.name}{OLD}{item_id}")


def _views_on(session: Session, table: lookup.TableItem) -> Sequence[Bearer]:
    bearer = Bearer(table.id, table.kind, table.name)
    return [one.item for one in leaving_with(session, [bearer]) if one.item.kind == "view"]


def plan_rollback(catalog: Catalog, table: str, kept: str | None = None) -> SwapPlan:
    """The way back: the table that was replaced last takes its name again.

    :param kept: which one, where several are still there.
    """
    name = typed_name(table)
    choices = [str(typed_name(kept))] if kept else _kept_tables(catalog, name)
    if len(choices) != 1:
        there = f"there are: {', '.join(choices)}" if choices else f"there is no table {name}{OLD}…"
        raise TerminalError(
            f"it is not clear which table gets the name {name} back: {there}",
            hint="name the kept table" if choices else "mzshare status",
        )
    with catalog.read() as session:
        return _plan(session, name, typed_name(choices[0]))


def _kept_tables(catalog: Catalog, name: QualifiedName) -> list[str]:
    """Tables that once had this name and are kept."""
    here = select(ItemRow.id, ItemRow.name).where(
        ItemRow.schema_name == name.schema, ItemRow.kind == "table", ItemRow.dropped_at.is_(None)
    )
    with catalog.read() as session:
        rows = session.execute(here.order_by(ItemRow.number)).all()
    return [str(QualifiedName(name.schema, row.name)) for row in rows if _was_kept(name, row.id, row.name)]


def _was_kept(name: QualifiedName, item_id: ItemId, called: str) -> bool:
    kept = _kept_name(name, item_id).name
    return called == kept or (called.startswith(f"{kept}_") and is_item_id(called.removeprefix(f"{kept}_")))


def swap_once(
    catalog: Catalog,
    table: str,
    other: str,
    *,
    new_id: str,
    old_id: str | None = None,
    keep_as: str | None = None,
    force: bool = False,
) -> Swapped:
    """Give ``other`` the name ``table``, and that one the name ``keep_as`` or ``other``, unless it was done before.

    The table that takes the name has to be live and caught up. If the replaced table takes the name ``other``, it has
    to be so too. If it gets the name ``keep_as``, it may be in any state, because nobody reads that name: so a stalled
    table can be replaced, or rolled back from.

    :param new_id: the id that ``table`` has after the swap; it shows whether the swap was done already.
    :param old_id: the id that it has according to the plan; another table that took the name since is not replaced.
    :param force: whatever state they are in.
    """
    name, from_ = typed_name(table), typed_name(other)
    kept = typed_name(keep_as) if keep_as else from_
    with catalog.write() as session:
        lock_namespace(session)
        live = _own_table(session, name)
        if live.id == new_id:
            before = lookup.find(session, _pair(kept))
            return Swapped(str(name), new_id, before.id if before else None, str(kept), changed=False)
        next_one = _own_table(session, from_)
        _check_planned((name, live.id, old_id), (from_, next_one.id, new_id))
        if not force:
            _check_takings(session, live.id, next_one.id, exchanged=kept == from_)
        swap_items(session, (live.id, live.name), (next_one.id, next_one.name))
        if kept != from_:
            rename_item(session, live.id, _pair(kept))
    return Swapped(str(name), new_id, live.id, str(kept), changed=True)


Planned = tuple[QualifiedName, ItemId, str | None]
"""A name, the table that has it now, and the one that has it according to the plan, if the plan says."""


def _check_planned(replaced: Planned, taking: Planned) -> None:
    (name, live, old_id), (other, next_one, new_id) = replaced, taking
    if next_one != new_id:
        raise TerminalError(
            f"table {other} is {next_one}, and {name} is {live}: neither is {new_id}, which should get the name",
            hint="mzshare sql 'SHOW TABLES'",
        )
    if old_id is not None and live != old_id:
        raise TerminalError(
            f"table {name} is now {live}, but was {old_id} when its replacement was planned, so it stays",
            hint="run the DAG again, which makes a new plan",
        )


def _check_takings(session: Session, live: ItemId, next_one: ItemId, *, exchanged: bool) -> None:
    stand = standings(session, (live, next_one))
    takings = [Taking(stand[next_one], holder=stand[live])]
    if exchanged:
        takings.append(Taking(stand[live], holder=stand[next_one]))
    check_takings(takings, "force")


def drop_unless_live(catalog: Catalog, table: str, other: str, *, last_id: str, keep: bool = False) -> str:
    """Drop ``other``, which was to take the name ``table``, unless it has got it. Returns what was done.

    :param last_id: as the plan says it: what is not newer was not made for this swap, and is never dropped here.
    :param keep: leave the loser, for a look at what is wrong.
    """
    name, loser = typed_name(table), typed_name(other)
    with catalog.write() as session:
        lock_namespace(session)
        present = lookup.find(session, _pair(loser))
        if present is None or present.kind != "table" or not _is_newer(present.id, last_id) or loser == name:
            return f"there is no new table {loser}: nothing to drop"
        if keep:
            return f"{loser} {present.id} is kept; {name} is unchanged"
        leaving = leaving_with(session, [Bearer(present.id, present.kind, present.name)])
        if used := [full_name(one.item.name) for one in leaving if one.why == "dependent"]:
            raise StillUsed("table", str(loser), used)
        drop_items(session, [Bearer(present.id, present.kind, present.name)])
    return f"dropped {loser} {present.id}; {name} is unchanged"


def _is_newer(item_id: str, than: str) -> bool:
    return int(item_id[1:]) > int(than[1:])


def _pair(name: QualifiedName) -> Name:
    return (name.schema, name.name)
