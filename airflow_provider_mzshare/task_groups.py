"""Tasks that belong together: a table added to a running source, from its definition to the proof of its cutover."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow.sdk import AssetAlias, BaseOperator, TaskGroup, chain

from airflow_provider_mzshare.assets.mzshare import table_asset
from airflow_provider_mzshare.hooks.base import DEFAULT_CONN_ID
from airflow_provider_mzshare.operators.backfills import (
    RetireBackfillOperator,
    StartBackfillOperator,
    VerifyCutoverOperator,
)
from airflow_provider_mzshare.operators.tables import CreateTablesFromSourceOperator
from airflow_provider_mzshare.sensors.offsets import OffsetsConvergedSensor

DAY_SECONDS = 86_400.0
_PLAIN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")


def add_tables(
    group_id: str,
    *,
    source: str,
    tables: Sequence[Mapping[str, Any]],
    max_lag: int = 1,
    timeout: float = DAY_SECONDS,
    verify: bool = True,
    deferrable: bool = True,
    retire: bool = True,
    alias: str | None = None,
    mzshare_conn_id: str = DEFAULT_CONN_ID,
    **default_args: Any,
) -> TaskGroup:
    """Add tables to a source that runs: create, one backfill for all, converge, verify; then tidy up.

    :param source: the source's name. (templated)
    :param tables: definitions as for :class:`CreateTablesFromSourceOperator`. Their names may be templates. (templated)
    :param max_lag: how many ticks a table may be behind when its cutover is asked for.
    :param timeout: how many seconds a table may take to converge.
    :param verify: read each table's range upstream once more and compare.
    :param deferrable: wait in the triggerer, not on a worker.
    :param retire: end the backfill in a teardown, also after a failure: its tables are then stalled.
    :param alias: an ``AssetAlias`` that gets the tables' assets from the verifying tasks; names may be templates.
    :param default_args: for all tasks of the group, as ``retries=2``.
    """
    names = [str(table.get("name", "")) for table in tables]
    shared: dict[str, Any] = {"mzshare_conn_id": mzshare_conn_id}
    wait = {"max_lag": max_lag, "timeout": timeout, "deferrable": deferrable}
    with TaskGroup(group_id, default_args=default_args) as group:  # type: ignore[arg-type]
        create = CreateTablesFromSourceOperator(task_id="create", source=source, tables=tables, **shared)
        start = StartBackfillOperator(task_id="start_backfill", tables=names, **shared)
        chain(create, start)
        named = zip(names, _suffixes(names), strict=True)
        arrived = [_arrival(start, *one, alias=alias, verify=verify, wait=wait, shared=shared) for one in named]
        if retire:
            end = RetireBackfillOperator(task_id="retire_backfill", tables=names, **shared)
            chain(arrived, end.as_teardown(setups=create))
    return group


def _arrival(
    start: BaseOperator,
    name: str,
    suffix: str,
    *,
    alias: str | None,
    verify: bool,
    wait: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> BaseOperator:
    """The tasks of one table after its backfill was started; returns the last task."""
    outlets = _outlets(name, alias if verify else None, shared["mzshare_conn_id"])
    converge = OffsetsConvergedSensor(
        task_id=f"converge_{suffix}", table=name, outlets=None if verify else outlets, **wait, **shared
    )
    chain(start, converge)
    if not verify:
        return converge
    proof = VerifyCutoverOperator(task_id=f"verify_{suffix}", table=name, outlets=outlets, **shared)
    chain(converge, proof)
    return proof


def _suffixes(names: Sequence[str]) -> Iterator[str]:
    """A task's id is fixed before templates are rendered."""
    for number, name in enumerate(names, start=1):
        yield name.replace(".", "_").lower() if _PLAIN.fullmatch(name) else str(number)


def _outlets(name: str, alias: str | None, mzshare_conn_id: str) -> list[Any]:
    if alias is not None:
        return [AssetAlias(alias)]
    return [table_asset(name, mzshare_conn_id)] if _PLAIN.fullmatch(name) else []
