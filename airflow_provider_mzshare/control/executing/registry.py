"""Which function carries out which statement: the one table. A new statement gets a line here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.answers import Result
from airflow_provider_mzshare.control.executing import (
    comments,
    drops,
    flags,
    names,
    new_tables,
    references,
    refusing,
    schemas,
    showing,
    sources,
    tables,
)
from airflow_provider_mzshare.control.executing.context import Context, Handler, RunHandler
from airflow_provider_mzshare.control.legacy import creating, subsources
from airflow_provider_mzshare.control.relations.queries import run_query
from airflow_provider_mzshare.control.sql import items as sql
from airflow_provider_mzshare.control.statement_checks import Checked
from airflow_provider_mzshare.control.views.definitions import create_view

HANDLERS: Mapping[type[Any], Handler] = {
    sql.CreateSource: creating.create_source,
    sql.CreateTable: new_tables.create_table,
    sql.CreateSubsource: subsources.create_subsource,
    sql.CreateView: create_view,
    sql.CreateSchema: schemas.create_schema,
    sql.AlterSourceSet: sources.alter_source,
    sql.AddSubsources: subsources.add_subsources,
    sql.DropSubsources: subsources.drop_subsources,
    sql.RefreshReferences: references.refresh,
    sql.AlterTable: tables.alter_table,
    sql.AlterTableSet: tables.set_options,
    sql.Rename: names.rename,
    sql.Swap: names.swap,
    sql.AlterSystem: flags.alter_system,
    sql.CommentOn: comments.comment_on,
    sql.DropItem: drops.drop_item,
    sql.DropSchema: drops.drop_schema,
    sql.Show: showing.show,
    sql.ShowCreate: showing.show_create,
    sql.Query: run_query,
    sql.Write: refusing.write,
}
READS: tuple[type[Any], ...] = (sql.Show, sql.ShowCreate, sql.Query, sql.Write)
"""A script of these alone opens no transaction that writes."""


TOGETHER: Mapping[type[Any], RunHandler] = {
    sql.CreateTable: new_tables.create_tables,
    sql.DropItem: drops.drop_tables,
}
"""For statements that ``together`` puts in one run."""


def carry_out_run(session: Session, run: Sequence[Checked[Any]], contexts: Sequence[Context]) -> Sequence[Result]:
    """As one after the other would be."""
    if len(run) == 1:
        return [carry_out(session, run[0], contexts[0])]
    return TOGETHER[type(run[0].statement)](session, run, contexts)


def carry_out(session: Session, checked: Checked[Any], context: Context) -> Result:
    return HANDLERS[type(checked.statement)](session, checked, context)
