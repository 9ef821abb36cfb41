"""From names to ids and back: a view stores ids, so a rename or a swap does not change what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA
from airflow_provider_mzshare.control.views.queries import (
    full_name,
    print_query,
    read_query,
    read_stored,
    tables_of,
    understood,
)
from airflow_provider_mzshare.control.views.readable import find_relation, get_relation
from airflow_provider_mzshare.control.views.view_errors import BadQuery
from airflow_provider_mzshare.core.ids import ItemId


@dataclass(frozen=True)
class Resolved:
    """:param tree: names relations by id. :param reads: these ids, each once, in order."""

    tree: exp.Query
    reads: tuple[ItemId, ...]

    @property
    def text(self) -> str:
        """As it is stored: every name quoted."""
        return print_query(self.tree, quote_all=True)


def resolve(session: Session, text: str, stand_ins: Mapping[str, Name] | None = None) -> Resolved:
    """:param stand_ins: names that mean other objects in this query: ``new``, ``old``."""
    tree = read_query(text)
    _check_aliases(tree)
    reads: dict[ItemId, None] = {}
    meant = stand_ins or {}
    for table in tables_of(tree):
        written = full_name(table)
        relation = find_relation(session, written if table.args.get("db") else meant.get(table.name, written))
        reads[relation.id] = None
        alias = table.alias or table.name
        _put(table, None, relation.id, alias)
    for column in tree.find_all(exp.Column):
        # A relation has one name in a query: its alias, or its own without the schema.
        column.set("db", None)
        column.set("catalog", None)
    return Resolved(tree, tuple(reads))


def stored(text: str) -> Resolved:
    """A query as it was stored."""
    tree = read_stored(text)
    return Resolved(tree, tuple(dict.fromkeys(ItemId(table.name) for table in tables_of(tree))))


def redirected(text: str, targets: Mapping[str, str]) -> Resolved:
    """A stored query that reads other objects, all changed at once: ``{"u1": "u2", "u2": "u3"}`` moves each by one."""
    tree = read_stored(text)
    for table in tables_of(tree):
        _put(table, None, targets.get(table.name, table.name), table.alias or table.name)
    return Resolved(tree, tuple(dict.fromkeys(ItemId(table.name) for table in tables_of(tree))))


def print_current(session: Session, text: str) -> str:
    """A stored query with the names that things have now."""
    return print_named(text, lambda item_id: get_relation(session, item_id).name)


def print_named(text: str, name_of: Callable[[ItemId], Name]) -> str:
    """A stored query with these names."""
    tree = read_stored(text)
    for table in tables_of(tree):
        schema, name = name_of(ItemId(table.name))
        alias = table.alias or table.name
        _put(table, None if schema == DEFAULT_SCHEMA and not _hidden(table, name) else schema, name, alias)
    return print_query(tree)


def _put(table: exp.Table, schema: str | None, name: str, alias: str) -> None:
    table.set("this", exp.to_identifier(name, quoted=True))
    table.set("db", exp.to_identifier(schema, quoted=True) if schema else None)
    kept = table.args.get("alias")
    columns: Sequence[exp.Expr] = kept.args.get("columns") or [] if kept else []
    if name == alias and not columns:
        table.set("alias", None)
    else:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=list(columns)))


def _hidden(table: exp.Table, name: str) -> bool:
    """Whether a WITH of an outer query defines this name, and so hides the relation."""
    place: exp.Expr | None = table
    while place is not None:
        with_ = place.args.get("with_")
        if with_ is not None and any(cte.alias == name for cte in with_.expressions):
            return True
        place = place.parent
    return False


def _check_aliases(tree: exp.Query) -> None:
    """Two relations of one FROM must not have the same name, or their columns could not be told apart."""
    with understood():
        for scope in traverse_scope(tree):
            seen: set[str] = set()
            for name, _ in scope.references:
                if name and name in seen:
                    raise BadQuery(f"two relations are called {name!r} in one FROM", hint="give one of them an AS")
                seen.add(name)
