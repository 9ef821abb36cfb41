"""The operators of a replacement on a real catalog, each executed again as by a retry or a clear."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import OutletEventAccessors
from structlog.testing import capture_logs

from airflow_provider_mzshare.assets.mzshare import table_asset
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.lifecycle.live_errors import NotLiveYet
from airflow_provider_mzshare.hooks.mzshare import MzShareHook
from airflow_provider_mzshare.operators.checking import CheckSQLOperator
from airflow_provider_mzshare.operators.reading import ReadTableOperator
from airflow_provider_mzshare.operators.swapping import DropUnlessLiveOperator, PlanSwapOperator, SwapTablesOperator
from tests.support.filled import Filled

Run = Callable[..., Any]


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filled]:
    """Where the default connection points to."""
    extra = {"home": str(tmp_path), "jars": str(tmp_path)}  # no Spark can be started here
    monkeypatch.setenv("AIRFLOW_CONN_MZSHARE_DEFAULT", json.dumps({"conn_type": "mzshare", "extra": extra}))
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        yield Filled(catalog, tmp_path)


@pytest.fixture
def run() -> Run:
    def executed(operator: type[BaseOperator], **arguments: Any) -> Any:
        task = operator(task_id=f"t{uuid4().hex}", **arguments)
        answer = task.execute({"outlet_events": OutletEventAccessors()})  # type: ignore[typeddict-item]
        json.dumps(answer)
        return answer

    return executed


def names(filled: Filled) -> dict[str, str]:
    with filled.catalog.read() as session:
        return {table.id: table.name[1] for table in lookup.list_tables(session)}


def test_a_table_is_replaced_and_the_way_back_is_known(filled: Filled, run: Run) -> None:
    source = filled.source()
    old = filled.table(source, "orders", "id bigint")
    plan = run(PlanSwapOperator, table="orders", other="")
    new = filled.table(source, "orders__next", "id bigint, n bigint")
    filled.feed(source, [{"id": 1, "n": 2}])
    assert (plan["old_id"], plan["other"], plan["keep_as"]) == (old, "public.orders__next", f"public.orders__old_{old}")
    swap = {"table": plan["table"], "other": plan["other"], "new_id": new, "keep_as": plan["keep_as"]}
    first = run(SwapTablesOperator, keep_days="0.5", **swap)
    again = run(SwapTablesOperator, **swap)
    assert (first["changed"], again["changed"], again["old_id"]) == (True, False, old)
    assert first["keep_until"] > again["keep_until"]
    assert names(filled) == {old: f"orders__old_{old}", new: "orders"}
    assert run(ReadTableOperator, table="orders") == [{"id": 1, "n": 2}]
    assert run(ReadTableOperator, table="s", columns=["offset"]) == [{"offset": 1}]
    assert run(ReadTableOperator, table="s", count=True) == run(ReadTableOperator, table="orders", count=True) == 1
    assert "nothing to drop" in run(DropUnlessLiveOperator, table="orders", other=plan["other"], last_id=old)
    back = run(PlanSwapOperator, table="orders", rollback=True)
    assert back["new_id"] == old
    run(SwapTablesOperator, **{key: back[key] for key in ("table", "other", "new_id", "keep_as")})
    assert names(filled) == {old: "orders", new: f"orders__old_{new}_{old}"}


def test_a_table_that_is_not_live_takes_no_name_unless_it_is_forced(filled: Filled, run: Run) -> None:
    """One that is on its way is tried again, one that has stalled is not: that is told by the error's type."""
    old = filled.table(source := filled.source(), "orders", "id bigint")
    filled.feed(source, [{"id": 1}])
    new = filled.table(source, "orders__next", "id bigint")
    swap = {"table": "orders", "other": "orders__next", "new_id": new}
    with pytest.raises(NotLiveYet, match="backfilling"):
        run(SwapTablesOperator, **swap)
    assert run(SwapTablesOperator, force="True", **swap)["changed"]
    filled.feed(source, [{"id": 2}], stall=[old])
    with pytest.raises(AirflowFailException, match="stalled"):
        run(SwapTablesOperator, **{**swap, "new_id": old})
    assert names(filled) == {old: "orders__next", new: "orders"}


def test_tables_that_are_not_live_are_not_read_unless_it_is_said(filled: Filled, run: Run) -> None:
    filled.table(source := filled.source(), "orders", "id bigint")
    filled.feed(source, [{"id": 1}])
    filled.table(source, "late", "id bigint")
    for asked in ({}, {"count": True}, {"errors": True}):
        with pytest.raises(NotLiveYet, match="table late is backfilling, 1 tick"):
            run(ReadTableOperator, table="late", **asked)
        with capture_logs() as logged:
            assert not run(ReadTableOperator, table="late", require_live=False, **asked)
        assert [one["log_level"] for one in logged if "mzshare wait late --for live" in str(one)] == ["warning"]
    with pytest.raises(NotLiveYet, match="late"):
        run(CheckSQLOperator, checks=["SELECT count(*) = 1 FROM new"], tables={"new": "late"})
    assert run(ReadTableOperator, table="orders") == [{"id": 1}]


def test_a_loser_is_dropped_or_kept(filled: Filled, run: Run) -> None:
    source = filled.source()
    old, new = filled.table(source, "orders", "id bigint"), filled.table(source, "orders__next", "id bigint")
    given = {"table": "orders", "other": "orders__next", "last_id": old}
    assert "is kept" in run(DropUnlessLiveOperator, keep="True", **given)
    assert new in run(DropUnlessLiveOperator, keep="False", **given)
    assert "nothing to drop" in run(DropUnlessLiveOperator, **given)
    assert names(filled) == {old: "orders"}


def test_an_asset_hears_of_the_swap(filled: Filled) -> None:
    source = filled.source()
    filled.table(source, "orders", "id bigint")
    new = filled.table(source, "orders__next", "id bigint")
    filled.feed(source, [{"id": 1}])
    events, asset = OutletEventAccessors(), table_asset("orders")
    swap = SwapTablesOperator(task_id="t", table="orders", other="orders__next", new_id=new, outlets=[asset])
    swap.execute({"outlet_events": events})  # type: ignore[typeddict-item]
    assert events[asset].extra["table"] == "public.orders"


def test_what_a_retry_cannot_heal_is_not_retried(filled: Filled, run: Run) -> None:
    filled.table(filled.source(), "orders", "id bigint")
    for operator, arguments, words in (
        (PlanSwapOperator, {"table": "nobody"}, "does not exist"),
        (PlanSwapOperator, {"table": "orders", "rollback": True}, "it is not clear which table gets the name"),
        (SwapTablesOperator, {"table": "orders", "other": "nobody", "new_id": "u9"}, "does not exist"),
        (
            SwapTablesOperator,
            {"table": "orders", "other": "orders", "new_id": "u2", "keep_days": "soon"},
            "keep_days must be a number",
        ),
        (CheckSQLOperator, {"checks": ["SELECT 1, 2"]}, "column"),
        (CheckSQLOperator, {"checks": ["DROP TABLE orders"]}, "a check must be one SELECT"),
        (CheckSQLOperator, {"checks": ["SELECT true; SELECT true"]}, "a check must be one SELECT"),
        (CheckSQLOperator, {"checks": ["SELECT true FROM"]}, "line 1, column 17"),
        (CheckSQLOperator, {"checks": ["SELECT true FROM new"]}, "'new'"),
        (CheckSQLOperator, {"checks": ["SELECT a FROM new"], "tables": {"new": "orders"}}, "no column 'a'"),
        (CheckSQLOperator, {"checks": "['SELECT true FROM', "}, "not a list"),
    ):
        with pytest.raises(AirflowFailException, match=words):
            run(operator, **arguments)
    assert run(CheckSQLOperator, checks="[]") == run(CheckSQLOperator, checks=[" "]) == []
    assert MzShareHook().table("orders").id == "u2"
