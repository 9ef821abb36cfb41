"""Binding of statements that are alike for all kinds of objects: views, names, comments, the system, DROP and SHOW."""

from __future__ import annotations

from typing import Any, cast, get_args

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.binding_parts import Binding, qualified_name
from airflow_provider_mzshare.control.sql.checks import check_swap
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.queries import settled_print

_FLAGS = get_args(values.Flag)
_SPOKEN = {"true": True, "on": True, "false": False, "off": False}


def _named(node: exp.Expr) -> QualifiedName | str:
    """A schema's name is one identifier."""
    return node.name if isinstance(node, exp.Identifier) else qualified_name(node)


class ObjectBinding(Binding):
    def _query(self, query: exp.Query) -> str:
        return self._checked(query, lambda: settled_print(query))

    def _create_view(self, node: nodes.CreateView) -> values.CreateView:
        query = self._checked(node, lambda: settled_print(node.expression))
        return values.CreateView(qualified_name(node.this), bool(node.args.get("exists")), query)

    def _rename(self, node: nodes.Rename) -> values.Rename:
        return values.Rename(cast("Any", node.text("kind").lower()), _named(node.this), node.expression.name)

    def _swap(self, node: nodes.Swap) -> values.Swap:
        kind, force = cast("Any", node.text("kind").lower()), bool(node.args.get("force"))
        swap = values.Swap(kind, _named(node.this), _named(node.expression), force)
        self._fits(lambda _: node, lambda: check_swap(swap))
        return swap

    def _alter_system(self, node: nodes.AlterSystem) -> values.AlterSystem:
        value = node.args.get("expression")
        if value is None:
            return values.AlterSystem(node.name, None)
        read = bool(value.this) if isinstance(value, exp.Boolean) else value.name
        if node.name in _FLAGS and not isinstance(read, bool):
            if read.lower() not in _SPOKEN:
                self.refuse(value, f"{node.name} must be true or false")
            read = _SPOKEN[read.lower()]
        return values.AlterSystem(node.name, read)

    def _comment_on(self, node: nodes.CommentOn) -> values.CommentOn:
        comment, column = node.args.get("expression"), node.args.get("column")
        return values.CommentOn(
            kind=cast("Any", node.text("kind").lower()),
            name=_named(node.this),
            comment=comment.name if comment else None,
            column=column.name if column else None,
        )

    def _drop_item(self, node: nodes.DropItem) -> values.DropItem | values.DropSchema:
        exists, cascade = bool(node.args.get("exists")), bool(node.args.get("cascade"))
        if node.text("kind") == "SCHEMA":
            return values.DropSchema(node.name, exists, cascade)
        return values.DropItem(
            cast("values.Kind", node.text("kind").lower()), qualified_name(node.this), exists, cascade
        )

    def _show_items(self, node: nodes.ShowItems) -> values.Show:
        schema = node.args.get("schema")
        return values.Show(cast("Any", node.name.lower()), schema.name if schema else None)

    def _show_create(self, node: nodes.ShowCreate) -> values.ShowCreate:
        kind = cast("values.Kind", node.text("kind").lower()) if node.args.get("kind") else None
        return values.ShowCreate(kind, qualified_name(node.this))
