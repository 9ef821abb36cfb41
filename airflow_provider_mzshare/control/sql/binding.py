"""From syntax tree to statement. Each kind of node has its own binding. Nothing is looked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.binding_parts import qualified_name
from airflow_provider_mzshare.control.sql.object_binding import ObjectBinding
from airflow_provider_mzshare.control.sql.source_binding import SourceBinding
from airflow_provider_mzshare.control.sql.table_binding import TableBinding

__all__ = ["Binder", "qualified_name"]


class Binder(SourceBinding, TableBinding, ObjectBinding):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._by_node: dict[type[exp.Expr], Callable[[Any], values.Plain]] = {
            nodes.CreateSource: self._create_source,
            nodes.CreateTable: self._create_table,
            nodes.CreateSubsource: self._create_subsource,
            nodes.CreateView: self._create_view,
            nodes.CreateSchema: lambda node: values.CreateSchema(node.name, bool(node.args.get("exists"))),
            nodes.AlterOptions: self._alter_options,
            nodes.AddSubsources: self._add_subsources,
            nodes.DropSubsources: self._drop_subsources,
            nodes.RefreshReferences: self._refresh_references,
            nodes.AlterTable: self._alter_table,
            nodes.Rename: self._rename,
            nodes.Swap: self._swap,
            nodes.AlterSystem: self._alter_system,
            nodes.CommentOn: self._comment_on,
            nodes.DropItem: self._drop_item,
            nodes.ShowItems: self._show_items,
            nodes.ShowCreate: self._show_create,
            nodes.Write: lambda node: values.Write(cast("Any", node.text("verb")), qualified_name(node.this)),
        }

    def bind(self, node: exp.Expr) -> values.Statement:
        return (
            values.Explain(self._bind_plain(node.this)) if isinstance(node, nodes.Explain) else self._bind_plain(node)
        )

    def _bind_plain(self, node: exp.Expr) -> values.Plain:
        if isinstance(node, exp.Query):
            return values.Query(self._query(node))
        return self._by_node[type(node)](node)

    def _alter_options(self, node: nodes.AlterOptions) -> values.Plain:
        return self._alter_source(node) if node.text("kind") == "SOURCE" else self._alter_table_options(node)
