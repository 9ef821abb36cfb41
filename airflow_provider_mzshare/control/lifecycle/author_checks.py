"""Checks that an author supplies: SELECTs that must come out true, all of them on one snapshot of the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airflow_provider_mzshare.compute.querying import a_session
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.queries.standings import standings
from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables, ignore
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.script import parse_script
from airflow_provider_mzshare.control.sql.values import Query
from airflow_provider_mzshare.control.views.read_view import ReadPlan, describe, plan_query, run_plan
from airflow_provider_mzshare.control.views.resolving import resolve
from airflow_provider_mzshare.control.views.view_errors import BadQuery


@dataclass(frozen=True)
class CheckResult:
    """:param ticks: the tick that was read of each source."""

    check: str
    passed: bool
    found: str
    ticks: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_checks(
    catalog: Catalog,
    warehouse: str,
    checks: Sequence[str],
    *,
    stand_ins: Mapping[str, QualifiedName] | None = None,
    jars: Path | None = None,
    not_live: NotLiveTables = ignore,
) -> list[CheckResult]:
    """:param checks: each one SELECT that answers with one value; ``true`` passes.
    :param stand_ins: plain names for tables that a check may use, as ``new`` and ``old``. Names of the catalog are
        known to it too.
    :param not_live: what to do about tables that are not live.
    """
    if not checks:
        return []
    named: dict[str, Name] = {plain: (name.schema, name.name) for plain, name in (stand_ins or {}).items()}
    plans: list[tuple[str, ReadPlan, Mapping[str, int]]] = []
    with catalog.read() as session:
        for check in checks:
            plan = plan_query(session, resolve(session, _query(check), named))
            if len(plan.columns) != 1:
                raise BadQuery(
                    f"a check must return one value, but this one has {len(plan.columns)} columns: {check}",
                    hint="SELECT count(*) = 0 FROM …",
                )
            plans.append((check, plan, describe(session, plan)))
        read = dict.fromkeys(table_id for _, plan, _ in plans for table_id in plan.table_ids)
        late = [table for table in standings(session, read).values() if not table.is_live]
    if late:
        not_live(late)
    with a_session(jars) as spark:
        return [
            _result(
                check, run_plan(plan, warehouse, lambda frame: frame.limit(2).collect(), jars=jars, spark=spark), at
            )
            for check, plan, at in plans
        ]


def _query(check: str) -> str:
    """In the form and within the limits of a statement."""
    written = [statement for transaction in parse_script(check) for statement in transaction.statements]
    if len(written) == 1 and isinstance(written[0], Query):
        return written[0].text
    raise BadQuery(f"a check must be one SELECT, but this is not: {check}", hint="SELECT count(*) = 0 FROM …")


def _result(check: str, rows: Sequence[Sequence[Any]], ticks: Mapping[str, int]) -> CheckResult:
    if len(rows) != 1:
        return CheckResult(check, False, "no row" if not rows else "more than one row", ticks)
    value = rows[0][0]
    return CheckResult(check, value is True, str(value).lower() if isinstance(value, bool) else repr(value), ticks)
