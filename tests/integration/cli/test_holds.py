"""Read holds on the command line: who pins what, since when, and how that is ended."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.holds import HoldStore
from airflow_provider_mzshare.core.ticklog.holds import Wanted
from tests.integration.cli.conftest import Cli
from tests.support.catalog import new_sqlite
from tests.support.held_table import BareTable


@pytest.fixture
def orders(cli: Cli) -> Iterator[BareTable]:
    with Catalog(new_sqlite(cli.home / "catalog.db")) as catalog:
        yield BareTable(catalog, cli.home)


def take(orders: BareTable, name: str, at: int) -> None:
    HoldStore(orders.catalog).take(orders.id, Wanted(name, at, f"dag {name}", "c", 60_000))


def test_holds_are_listed_shown_by_status_dropped_and_forgotten(cli: Cli, orders: BareTable) -> None:
    assert cli.ok("holds").out == "nobody holds anything\n"
    assert cli.ok("holds", "-o", "json").json == []
    second, third = orders.times[1:3]
    take(orders, "late", third)
    take(orders, "loader", second)
    (first, other) = cli.ok("holds", "-o", "json").json
    assert cli.ok("holds", "list", "orders", "-o", "json").json[1]["name"] == other["name"] == "late"
    assert {name: first[name] for name in ("name", "table", "at", "holder", "limit_seconds", "dropped_at", "why")} == {
        "name": "loader", "table": "orders", "at": second, "holder": "dag loader", "limit_seconds": 60.0,
        "dropped_at": None, "why": None,
    }  # fmt: skip
    shown = cli.ok("status", "orders").out
    assert (
        f"public.orders: since cannot pass {second}, which the read hold 'loader' of dag loader has held since" in shown
    )
    (table,) = cli.ok("status", "orders", "-o", "json").json
    assert [hold["name"] for hold in table["holds"]] == ["loader", "late"]  # type: ignore[attr-defined]

    dropped = json.loads(cli.ok("holds", "drop", "loader", "-o", "json").out)
    assert (dropped["result"], dropped["table"], dropped["at"]) == ("dropped", "orders", second)
    assert f"public.orders: the read hold 'loader' at {second} was dropped at " in cli.ok("status", "orders").out
    assert "dropped it by hand" in cli.ok("holds").out
    assert (
        cli.ok("holds", "drop", "loader").out == f"forgotten: the hold 'loader' of dag loader on orders at {second}\n"
    )
    assert cli.error("holds", "drop", "loader") == "error: there is no hold 'loader'. Try: mzshare holds"
    assert [hold["name"] for hold in cli.ok("holds", "-o", "json").json] == ["late"]


def test_maintain_says_what_is_held_and_whose_hold_it_dropped(cli: Cli, orders: BareTable) -> None:
    take(orders, "loader", orders.times[1])
    (done,) = cli.ok("maintain", "-o", "json").json
    assert (done["since"], done["held_at"], done["dropped_holds"]) == (orders.times[1], orders.times[1], [])
    orders.silence("loader", 61)
    answer = cli.ok("maintain")
    told = f"loader at {orders.times[1]}: dag loader was not heard of for 60 s"
    assert answer.err == f"orders: dropped the read hold {told}\n"
    assert str(orders.times[5]) in answer.out
