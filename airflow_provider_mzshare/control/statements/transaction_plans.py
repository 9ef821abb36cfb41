"""Puts the plan of a transaction beside the results of its statements: one for all tables on the same source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from airflow_provider_mzshare.control.lifecycle import table_plans
from airflow_provider_mzshare.control.statements.answers import Result, full_name
from airflow_provider_mzshare.control.statements.context import Decision


@dataclass(frozen=True)
class Applied:
    """A statement that was carried out; ``group`` tells the transactions of a script apart."""

    group: int
    result: Result
    decisions: tuple[Decision, ...] = ()


def with_plans(applied: Iterable[Applied]) -> list[Result]:
    """Each result with the plan it is part of."""
    applied = list(applied)
    parts: dict[tuple[int, str], list[Decision]] = {}
    for one in applied:
        for decision in one.decisions:
            parts.setdefault((one.group, decision.source.id), []).append(decision)
    plans = {key: plan_of(decisions) for key, decisions in parts.items()}
    return [
        replace(one.result, plan=plans[one.group, one.decisions[0].source.id]) if one.decisions else one.result
        for one in applied
    ]


def plan_of(decisions: Sequence[Decision]) -> table_plans.TablePlan:
    """The plan of tables on one source."""
    first = decisions[0]
    return table_plans.plan_tables(
        full_name(first.source.name),
        first.state,
        first.source.settings,
        [decision.arrival for decision in decisions],
        {partition: size for decision in decisions for partition, size in decision.sizes.items()},
        {one.arrival.table: one.kept_seconds for one in decisions if one.kept_seconds is not None},
    )
