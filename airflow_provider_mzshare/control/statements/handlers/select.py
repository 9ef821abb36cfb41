"""SELECT on the catalog's relations, run by the catalog's own database: read only, in bounds, the same on both kinds.

A query is taken apart and put together again: what it may call is listed by name (``views.admitted``), and what it
reads is one of our relations. So text of a user reaches the database only as a name or a literal of the tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session
from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from airflow_provider_mzshare.control.catalog.at_commit import settle
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.relations.fetching import fetch
from airflow_provider_mzshare.control.relations.install import BY_NAME, SCHEMAS
from airflow_provider_mzshare.control.relations.query_errors import NoSuchRelation, NotInCatalog
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.control.views.columns import outputs
from airflow_provider_mzshare.control.views.queries import DIALECT, name_outputs, read_query, tables_of
from airflow_provider_mzshare.control.views.view_errors import BadQuery, UnknownColumn
from airflow_provider_mzshare.errors import TerminalError

_UNKNOWN = re.compile(r"(?:Column '|Unknown column: )(?P<name>[^'\s]+)")
_PROGRESS = "mz_progress"
_PROGRESS_COLUMNS = ("partition", "offset", "tick", "mz_timestamp")
_SCHEMA = MappingSchema(
    {
        relation.name: {
            column.name: exp.DataType.build(column.type, dialect=DIALECT) for column in relation.columns
        }
        for relation in BY_NAME.values()
    },
    dialect=DIALECT,
    normalize=False,
)  # fmt: skip


def run_query(session: Session, checked: Checked[sql.Query], context: Context) -> Result:
    """The handler: columns as the query names them, values of their types.

    In a transaction it sees what earlier statements did, also in printed definitions and recorded statuses.
    """
    settle(session)
    tree = name_outputs(read_query(checked.statement.text))
    for given in tree.find_all(exp.CTE):
        if given.alias in BY_NAME:
            raise BadQuery(f"{given.alias} is a relation of the catalog: use another name in WITH")
    for table in list(tables_of(tree)):
        table.replace(_resolved(session, table))
    typed = _typed(tree)
    names = tuple(outputs(typed))
    rows = fetch(session, _printed(tree, session))
    reads = [_reader(projection) for projection in typed.selects]
    values = [{name: read(cell) for name, read, cell in zip(names, reads, row, strict=True)} for row in rows]
    return Result("SELECT", columns=names, rows=values)


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _resolved(session: Session, table: exp.Table) -> exp.Expr:
    """A relation of ours under its plain name, or a source's progress."""
    schema, name = table.text("db"), table.name
    relation = BY_NAME.get(name)
    if relation is not None and schema in ("", relation.schema):
        return _with_joins(exp.Table(this=exp.to_identifier(name, quoted=True), alias=_alias(table)), table)
    if schema in SCHEMAS:
        raise NoSuchRelation(f"{schema}.{name}", BY_NAME)
    source = _source(session, (schema or DEFAULT_SCHEMA, name))
    columns = [exp.column(exp.to_identifier(column, quoted=True)) for column in _PROGRESS_COLUMNS]
    own = exp.column(exp.to_identifier("source_id", quoted=True)).eq(exp.Literal.string(source))
    progress = exp.select(*columns).from_(exp.Table(this=exp.to_identifier(_PROGRESS, quoted=True))).where(own)
    return _with_joins(exp.Subquery(this=progress, alias=_alias(table)), table)


def _source(session: Session, name: tuple[str, str]) -> str:
    item = lookup.find(session, name)
    if isinstance(item, lookup.ProgressItem):
        return item.source_id
    if item is None:
        raise NoSuchRelation(display_name(name), BY_NAME)
    if isinstance(item, lookup.SourceItem) and lookup.output_of(session, item.id) is None:
        return item.id
    raise NotInCatalog(item.kind, item.display)


def _alias(table: exp.Table) -> exp.TableAlias:
    given = table.args.get("alias")
    return given.copy() if given else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))


def _with_joins(new: exp.Expr, old: exp.Table) -> exp.Expr:
    for key in ("joins", "laterals"):
        if old.args.get(key):
            new.set(key, [part.copy() for part in old.args[key]])
    return new


def _typed(tree: exp.Query) -> exp.Query:
    try:
        qualified = qualify(tree.copy(), schema=_SCHEMA, dialect=DIALECT)
        typed = annotate_types(qualified, schema=_SCHEMA, dialect=DIALECT)
    except OptimizeError as error:
        raise _told(str(error).splitlines()[0], tree) from None
    assert isinstance(typed, exp.Query)
    return typed


def _told(message: str, tree: exp.Query) -> TerminalError:
    """sqlglot's positions are those of the printed query, which the user has not seen: so the error gives the name."""
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return BadQuery(f"the query cannot be answered: {message.partition(' Line:')[0]}")
    read = [BY_NAME[table.name] for table in tree.find_all(exp.Table) if table.name in BY_NAME]
    known = [column.name for one in read for column in one.columns]
    if known.count(unknown["name"]) > 1:
        return BadQuery(f"column {unknown['name']!r} is in more than one relation", hint="write relation.column")
    return UnknownColumn(unknown["name"], dict.fromkeys(known))


def _printed(tree: exp.Query, session: Session) -> str:
    """In the words of the database. There relations are in schemas, or have plain names."""
    postgres = session.get_bind().dialect.name == "postgresql"
    printed = tree.copy()
    for column in printed.find_all(exp.Column):
        column.set("db", None)
    if postgres:
        for table in list(tables_of(printed)):
            if table.name in BY_NAME and not table.args.get("db"):
                table.set("db", exp.to_identifier(BY_NAME[table.name].schema, quoted=True))
    return printed.sql("postgres" if postgres else "sqlite", comments=False)


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reader(projection: exp.Expr) -> Callable[[Any], Any]:
    """SQLite stores booleans as numbers and JSON as text: both are turned into Python values."""
    kind = projection.type or exp.DataType.build("unknown")
    if kind.is_type(exp.DType.BOOLEAN):
        return lambda cell: None if cell is None else bool(cell)
    part = isinstance(projection.unalias(), exp.JSONExtract)
    if part or kind.is_type(exp.DType.JSON, exp.DType.JSONB) or kind.this == exp.DType.ARRAY:
        return lambda cell: json.loads(cell) if isinstance(cell, str) else cell
    return lambda cell: cell
