"""``mz.hold``: a context that keeps a table's history, with a heartbeat of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest

from airflow_provider_mzshare import MzShare, connect
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.holds import HoldStore
from airflow_provider_mzshare.core.arguments import BadArgument
from airflow_provider_mzshare.core.ticklog.holds import (
    HoldDropped,
    HoldEnded,
    HoldLost,
    HoldRefused,
    HoldTakenOver,
)
from airflow_provider_mzshare.errors import NotReadable, TerminalError, UnknownItem
from tests.support.catalog import new_sqlite
from tests.support.held_table import BareTable, HeldTable
from tests.support.reading_page import examples, run
from tests.support.waiting import wait_until


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[BareTable]:
    with Catalog(new_sqlite(tmp_path / "catalog.db")) as catalog:
        yield BareTable(catalog, tmp_path)


@pytest.fixture
def mz(orders: BareTable) -> Iterator[MzShare]:
    with connect(home=orders.folder) as found:
        yield found


def names(mz: MzShare) -> list[str]:
    return [row["name"] for row in mz.sql("SELECT name FROM mz_read_holds ORDER BY name")[0].rows or ()]


def test_it_holds_while_it_is_open_and_lets_go_at_its_end(mz: MzShare, orders: BareTable) -> None:
    with mz.hold("orders", at=orders.times[1]) as hold:
        assert (hold.table, hold.at, names(mz)) == ("orders", orders.times[1], [hold.name])
        assert orders.maintain().since == orders.times[1]
        hold.move(orders.times[3])
        assert hold.at == orders.times[3]
        assert orders.maintain().since == orders.times[3]
    assert names(mz) == []
    assert orders.maintain().since == orders.times[5]
    moment = datetime.fromtimestamp((orders.times[5] + 0.5) / 1000, timezone.utc)
    with mz.hold("orders", at=moment) as at_a_time, mz.hold("orders") as newest:
        assert at_a_time.at == newest.at == orders.times[5]
        assert at_a_time.name != newest.name


def test_an_error_inside_lets_go_and_is_what_is_raised(mz: MzShare, orders: BareTable) -> None:
    with pytest.raises(ZeroDivisionError), mz.hold("orders", name="loader"):
        raise ZeroDivisionError
    assert names(mz) == []
    with pytest.raises(ZeroDivisionError), mz.hold("orders", name="loader") as hold:
        assert HoldStore(orders.catalog).drop(hold.name, "by hand")[0].at / 0


def test_kept_at_its_end_it_goes_on_where_it_stood(mz: MzShare, orders: BareTable) -> None:
    with mz.hold("orders", name="loader", at=orders.times[1], keep=True, holder="the loader") as hold:
        hold.move(orders.times[2])
    assert names(mz) == ["loader"]
    with mz.hold("orders", name="loader") as again:
        assert again.at == orders.times[2]
        with pytest.raises(HoldRefused, match="cannot go back"):
            again.move(orders.times[1])
    assert names(mz) == []


def test_its_heart_beats_by_itself(mz: MzShare, orders: BareTable) -> None:
    with mz.hold("orders", name="loader", at=orders.times[1], limit=2) as hold:
        taken = orders.hold_row("loader")
        assert taken is not None
        wait_until(lambda: (orders.hold_row("loader") or taken).heartbeat > taken.heartbeat + 2_000, 60, "heartbeats")
        hold.check()
        assert orders.maintain().dropped_holds == ()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "hold loader"]


def test_whoever_lost_it_is_told_inside_and_at_the_end(mz: MzShare, orders: BareTable) -> None:
    opened = ExitStack()
    hold = opened.enter_context(mz.hold("orders", name="loader", limit=0.2))
    HoldStore(orders.catalog).drop("loader", "by hand")

    def is_told() -> bool:
        try:
            hold.check()
        except HoldLost:
            return True
        return False

    wait_until(is_told, 30, "a heartbeat to find it")
    with pytest.raises(HoldDropped):
        hold.move(orders.times[5])
    with pytest.raises(HoldDropped, match="by hand"):
        opened.close()
    with pytest.raises(HoldDropped), mz.hold("orders", name="loader"):
        pytest.fail("it stood at a time, and that may be gone")
    with mz.hold("orders", name="loader", at=orders.times[5]) as again:
        assert again.at == orders.times[5]


def test_the_one_before_is_told_who_came_after(mz: MzShare) -> None:
    opened = ExitStack()
    opened.enter_context(mz.hold("orders", name="loader"))
    with mz.hold("orders", name="loader", holder="another"), pytest.raises(HoldTakenOver, match="by another"):
        opened.close()
    assert names(mz) == []


def test_the_example_of_the_page_reads_every_change_once(tmp_path: Path) -> None:
    (example,) = examples("Holding history")
    with Catalog(new_sqlite(tmp_path / "catalog.db")) as catalog, connect(home=tmp_path) as mz:
        orders = HeldTable(catalog, tmp_path)
        with mz.hold("orders", name="loader", at=orders.times[1], keep=True):
            pass
        orders.maintain()
        orders.resnapshot()
        orders.maintain()
        got = []
        for _ in range(3):
            with mock.patch.dict(os.environ, MZSHARE_HOME=str(tmp_path)):
                got.append(run(example)["changes"].column("id").to_pylist())
            orders.maintain()
            orders.tick()
        assert got == [[2, 3, 4, 5, 6], [7], [8]]


def test_what_is_not_there_is_not_held(mz: MzShare, orders: BareTable) -> None:
    with pytest.raises(UnknownItem), mz.hold("nobody"):
        pass
    with pytest.raises(NotReadable), mz.hold("orders", at=orders.times[5] + 1):
        pass
    for wrong, says in (
        ({"at": datetime(2026, 1, 1)}, "at cannot be datetime.* it takes a time with a zone"),
        ({"at": "now"}, "at cannot be 'now': it takes a time"),
        ({"at": 2**63}, "at cannot be 9223372036854775808"),
        ({"name": 5}, "name cannot be 5: it takes text"),
        ({"limit": "1h"}, "limit cannot be '1h': it takes a number of seconds"),
        ({"limit": float("nan")}, "limit cannot be nan"),
        ({"keep": "yes"}, "keep cannot be 'yes': it takes True or False"),
        ({"holder": b"me"}, "holder cannot be b'me': it takes text"),
    ):
        with pytest.raises(BadArgument, match=says), mz.hold("orders", **wrong):  # type: ignore[arg-type]
            pytest.fail(says)
    with pytest.raises(TerminalError, match="a name cannot be 5"), mz.hold(5):  # type: ignore[arg-type]
        pass
    with mz.hold("orders") as hold, pytest.raises(BadArgument, match="at cannot be 'now'"):
        hold.move("now")  # type: ignore[arg-type]
    assert names(mz) == []


def test_what_is_kept_has_a_name_by_which_it_is_found(mz: MzShare) -> None:
    for name, says in ((None, "a hold that is kept needs a name"), ("", "and this one has 0"), ("x" * 1_001, "1,001")):
        with pytest.raises(HoldRefused, match=says), mz.hold("orders", name=name, keep=True):
            pytest.fail("nobody would find it again")
    assert names(mz) == []
    longest = "ö" * 500
    for _ in range(2):
        with mz.hold("orders", name=longest, keep=True) as hold:
            assert hold.name == longest
    assert names(mz) == [longest]


@pytest.mark.parametrize(("keep", "now"), [(True, "nobody keeps it alive any more"), (False, "it was released")])
def test_after_its_end_nobody_is_told_that_all_is_well(mz: MzShare, keep: bool, now: str) -> None:
    with mz.hold("orders", name="loader", keep=keep) as hold:
        hold.check()
    for ask in (hold.check, lambda: hold.move(hold.at)):
        with pytest.raises(HoldEnded, match=f"the hold 'loader' on orders has ended, and {now}"):
            ask()
