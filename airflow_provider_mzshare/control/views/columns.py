"""Which columns relations and queries have, and whether those that a query names are there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sqlalchemy.orm import Session
from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.views.queries import DIALECT, name_outputs, understood
from airflow_provider_mzshare.control.views.readable import PROGRESS_COLUMNS, Relation, get_relation
from airflow_provider_mzshare.control.views.resolving import Resolved, stored
from airflow_provider_mzshare.control.views.typing import METADATA
from airflow_provider_mzshare.control.views.view_errors import BadQuery, UnknownColumn
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.schema import Column
from airflow_provider_mzshare.storage.table_columns import user_columns

Columns: TypeAlias = Mapping[str, exp.DataType]
_UNKNOWN = re.compile(r"Unknown column: (?P<name>.+)", re.DOTALL)


class Typed:
    """Qualifies queries against the catalog, and remembers the columns of each relation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._columns: dict[ItemId, Columns] = {}

    def columns_of(self, relation_id: ItemId) -> Columns:
        if relation_id not in self._columns:
            self._columns[relation_id] = self._find(get_relation(self._session, relation_id))
        return self._columns[relation_id]

    def _find(self, relation: Relation) -> Columns:
        if isinstance(relation.item, lookup.ViewItem):
            return outputs(self.qualified(stored(relation.item.query)))
        return {column.name: _sql_type(column.type) for column in columns_of_item(relation.item)}

    def qualified(self, query: Resolved) -> exp.Query:
        """The query with its stars expanded; each column has its relation, and each expression its type."""
        known = {relation_id: self.columns_of(relation_id) for relation_id in query.reads}
        # The names are folded already, and the types are sqlglot's trees.
        schema = MappingSchema(
            {name: dict(columns) for name, columns in known.items()}, dialect=DIALECT, normalize=False
        )
        tree = name_outputs(query.tree.copy())
        with understood():
            try:
                tree = qualify(tree, schema=schema, dialect=DIALECT, validate_qualify_columns=False)
            except OptimizeError as error:
                raise self._told(str(error), query.reads) from None
            self._check(tree, query.reads)
            typed = annotate_types(tree, schema=schema, expression_metadata=METADATA, dialect=DIALECT)
        assert isinstance(typed, exp.Query)
        return typed

    def _check(self, tree: exp.Expr, reads: Sequence[ItemId]) -> None:
        if whole := tree.find(exp.TableColumn):
            raise self._unknown(whole.name, reads)
        for scope in traverse_scope(tree):
            if isinstance(scope.expression, exp.Select):
                for column in scope.unqualified_columns:
                    self._refuse(column, reads)
                if scope.external_columns and not scope.is_correlated_subquery:
                    raise self._unknown(scope.external_columns[0].sql(DIALECT), reads)

    def _refuse(self, column: exp.Column, reads: Sequence[ItemId]) -> None:
        bearers = [one for one in reads if column.name in self.columns_of(one)]
        if len(bearers) > 1:
            raise BadQuery(f"column {column.name!r} is in more than one relation", hint="write relation.column")
        raise self._unknown(column.name, reads)

    def _told(self, message: str, reads: Sequence[ItemId]) -> Exception:
        found = _UNKNOWN.match(message)
        return self._unknown(found["name"], reads) if found else BadQuery(message.splitlines()[0])

    def _unknown(self, name: str, reads: Sequence[ItemId]) -> UnknownColumn:
        return UnknownColumn(name, dict.fromkeys(column for one in reads for column in self.columns_of(one)))


def outputs(tree: exp.Query) -> Columns:
    """The columns of a qualified query. A name may occur once, in any case, as in a table."""
    found: dict[str, exp.DataType] = {}
    for projection in tree.selects:
        name = projection.alias_or_name
        if any(name.lower() == other.lower() for other in found):
            raise BadQuery(f"the query has more than one column {name!r}", hint="give one of them another name: … AS n")
        found[name] = projection.type or exp.DataType.build("unknown")
    return found


def columns_of_item(item: lookup.Item) -> Sequence[Column]:
    """The columns of a table without its system columns, or those of a source's progress."""
    return user_columns(item.spec) if isinstance(item, lookup.TableItem) else PROGRESS_COLUMNS


def _sql_type(name: str) -> exp.DataType:
    """JSON is kept as text, and the operators on it work on text."""
    if name == "jsonb":
        return exp.DataType.build("text")
    return exp.DataType.build("double precision" if name == "double" else name, dialect=DIALECT)
