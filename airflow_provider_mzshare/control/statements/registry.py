"""Which function carries out which statement: the one table. A new statement gets a line here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.context import Context, Handler, Planner, RunHandler, StatementPlan
from airflow_provider_mzshare.control.statements.facts import Facts
from airflow_provider_mzshare.control.statements.handlers import (
    comments,
    drops,
    flags,
    new_tables,
    references,
    refusals,
    renames,
    schemas,
    show,
    sources,
    swaps,
    tables,
)
from airflow_provider_mzshare.control.statements.handlers.select import run_query
from airflow_provider_mzshare.control.statements.handlers.views import create_view
from airflow_provider_mzshare.control.statements.legacy import creating, subsources
from airflow_provider_mzshare.control.statements.upstream_checks import Checked


def _create_source(session: Session, checked: Checked[sql.CreateSource], context: Context) -> Result:
    """CREATE SOURCE, in the old or the new syntax."""
    is_old = checked.statement.spec.legacy is not None
    return (creating.create_source if is_old else sources.create_source)(session, checked, context)


PLANNERS: Mapping[type[Any], Planner] = {
    sql.CreateTable: new_tables.CREATE,
    sql.AlterTable: tables.HEAL,
    sql.Swap: swaps.SWAP,
}
"""Statements whose decision can be changed by others. Their plan can be kept, and executed later."""


HANDLERS: Mapping[type[Any], Handler] = {
    **{statement: planner.at_once for statement, planner in PLANNERS.items()},
    sql.CreateSource: _create_source,
    sql.CreateSubsource: subsources.create_subsource,
    sql.CreateView: create_view,
    sql.CreateSchema: schemas.create_schema,
    sql.AlterSourceSet: sources.alter_source,
    sql.AddSubsources: subsources.add_subsources,
    sql.DropSubsources: subsources.drop_subsources,
    sql.RefreshReferences: references.refresh,
    sql.AlterTableSet: tables.set_options,
    sql.Rename: renames.rename,
    sql.AlterSystem: flags.alter_system,
    sql.CommentOn: comments.comment_on,
    sql.DropItem: drops.drop_item,
    sql.DropSchema: drops.drop_schema,
    sql.Show: show.show,
    sql.ShowCreate: show.show_create,
    sql.Query: run_query,
    sql.Write: refusals.write,
}
READS: tuple[type[Any], ...] = (sql.Show, sql.ShowCreate, sql.Query, sql.Write)
"""A script of these alone opens no transaction that writes."""


TOGETHER: Mapping[type[Any], RunHandler] = {
    sql.CreateTable: new_tables.create_tables,
    sql.DropItem: drops.drop_tables,
}
"""Handlers for runs of statements that ``together`` has found."""


def carry_out_run(session: Session, run: Sequence[Checked[Any]], contexts: Sequence[Context]) -> Sequence[Result]:
    """The same results as if the statements were carried out one by one."""
    if len(run) == 1:
        return [carry_out(session, run[0], contexts[0])]
    return TOGETHER[type(run[0].statement)](session, run, contexts)


def carry_out(session: Session, checked: Checked[Any], context: Context) -> Result:
    return HANDLERS[type(checked.statement)](session, checked, context)


def plan_statement(session: Session, checked: Checked[Any]) -> StatementPlan:
    """What one of ``PLANNERS`` would do. Nothing is locked and nothing is written: the transaction may be a read."""
    return PLANNERS[type(checked.statement)].plan(Facts(session, locks=False), checked)


def execute_plan(session: Session, plan: StatementPlan, context: Context) -> Result:
    """Execute an older plan as it is. Raises StalePlan, and does nothing, if the plan's facts have changed since."""
    return PLANNERS[type(plan.statement)].execute(Facts(session), plan, context)
