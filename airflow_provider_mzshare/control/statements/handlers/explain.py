"""EXPLAIN: what a statement would do, as rows. It is carried out inside a savepoint that is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.lifecycle.plan_text import step_lines, warning
from airflow_provider_mzshare.control.lifecycle.table_plans import Step, TablePlan
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.context import Context, Decision, Effect
from airflow_provider_mzshare.control.statements.registry import READS, carry_out
from airflow_provider_mzshare.control.statements.transaction_plans import plan_of
from airflow_provider_mzshare.control.statements.upstream_checks import Checked

COLUMNS = ("step", "action", "object", "detail")


def explain(session: Session, checked: Checked[Any]) -> Result:
    context = Context(dry_run=True)
    savepoint = session.begin_nested()
    # ``session.info`` is restored with the rows: a backfill that was opened here does not exist after the rollback.
    remembered = {key: copy(value) for key, value in session.info.items()}
    try:
        result = carry_out(session, checked, context)
    finally:
        savepoint.rollback()
        session.info.clear()
        session.info.update(remembered)
        session.expunge_all()
    effects = context.effects or [_only_effect(checked, result)]
    plans = _plans(context.decisions)
    rows = [_row(effect) for effect in effects] + [row for plan in plans for row in _steps(plan)]
    return Result(
        "EXPLAIN",
        result.name,
        result.id,
        columns=COLUMNS,
        rows=[{"step": number, **row} for number, row in enumerate(rows, start=1)],
        plan=plans[0] if plans else None,
    )


def _only_effect(checked: Checked[Any], result: Result) -> Effect:
    """The action of a statement that has listed none, from its result."""
    if isinstance(checked.statement, READS):
        return Effect("read", result.command.lower())
    note = result.message.partition("(")[2].rstrip(")").removesuffix("dry run").rstrip(", ")
    return Effect(result.command.lower(), result.name or "", note)


def _plans(decisions: Sequence[Decision]) -> list[TablePlan]:
    by_source: dict[str, list[Decision]] = {}
    for decision in decisions:
        by_source.setdefault(decision.source.id, []).append(decision)
    return [plan_of(of_source) for of_source in by_source.values()]


def _row(effect: Effect) -> dict[str, Any]:
    return {"action": effect.action, "object": effect.object, "detail": effect.detail}


def _detail(step: Step) -> str:
    """The step as text, without its name, which has a column of its own."""
    first, *more = step_lines(step)
    return "; ".join((first.partition(": ")[2], *more))


def _steps(plan: TablePlan) -> list[dict[str, Any]]:
    rows = [
        {"action": step.name.replace("_", " "), "object": ", ".join(step.tables), "detail": _detail(step)}
        for step in plan.steps
    ]
    if plan.deletes is not None:
        rows.append({"action": "warning", "object": ", ".join(plan.deletes.tables), "detail": warning(plan.deletes)})
    return rows
