"""The plans of a transaction's tables as steps: with estimates, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_provider_mzshare.control.lifecycle.plan_text import plan_text
from airflow_provider_mzshare.control.lifecycle.table_plans import (
    Backfill,
    CutOver,
    Estimate,
    Follow,
    ShareFromFirstTick,
    Snapshot,
    StartAtNow,
    TablePlan,
    plan_tables,
)
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival
from airflow_provider_mzshare.core.ticklog.state import SourceState, Tick

START = Position({0: 10})
UPPER = Position({0: 250_010, 1: 749_000, 2: 1})
NEW = SourceState(ItemId("u1"), "active", "topic-1", START)
RUNNING = replace(NEW, last=Tick(120, START, UPPER, 1_000, committed=True))


def planned(state: SourceState, *arrivals: Arrival, sizes: dict[str, float] | None = None, rate: int | None = None):
    return plan_tables("public.s", state, SourceSettings(backfill_rate=rate), arrivals, sizes)


# ── plans ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tables_of_one_transaction_share_one_backfill() -> None:
    arrivals = [arrival_plans.create(RUNNING, name, snapshot=snapshot) for name, snapshot in
                (("a", True), ("now", False), ("b", True))]  # fmt: skip
    assert planned(RUNNING, *arrivals) == TablePlan(
        "public.s",
        (
            StartAtNow(("now",), UPPER),
            Backfill(("a", "b"), START, UPPER, 1, 120, Estimate(records=999_001, partitions=3)),
            Follow(("a", "b")),
            CutOver(("a", "b")),
        ),
    )


def test_a_backfill_reads_from_where_the_first_of_its_tables_stands() -> None:
    far = Arrival("far", "backfill", Position({0: 100, 1: 749_000, 2: 1}), 30)
    near = Arrival("near", "backfill", Position({0: 250_010, 1: 700_000, 2: 1}), 90)
    (backfill, *_) = planned(RUNNING, near, far).steps
    assert isinstance(backfill, Backfill)
    assert (backfill.lower, backfill.first) == (Position({0: 100, 1: 700_000, 2: 1}), 30)
    assert backfill.history == {"0": (100, 250_010), "1": (700_000, 749_000)}
    assert backfill.estimate == Estimate(records=249_910 + 49_000, partitions=2)


def test_sizes_are_the_mean_where_nobody_looked() -> None:
    arrival = arrival_plans.create(RUNNING, "t", snapshot=True)
    (backfill, *_) = planned(RUNNING, arrival, sizes={"0": 100.0, "2": 300.0}).steps
    assert isinstance(backfill, Backfill)
    assert backfill.estimate.size == 250_000 * 100 + 749_000 * 200 + 1 * 300


@pytest.mark.parametrize(("rate", "seconds"), [(None, None), (0, None), (10_000, 99.9001)])
def test_time_is_told_where_there_is_a_rate(rate: int | None, seconds: float | None) -> None:
    (backfill, *_) = planned(RUNNING, arrival_plans.create(RUNNING, "t", snapshot=True), rate=rate).steps
    assert isinstance(backfill, Backfill)
    assert backfill.estimate.seconds == seconds


# ── plans in words and as JSON ────────────────────────────────────────────────────────────────────────────────────────


def test_the_plan_of_a_first_table_in_words() -> None:
    assert plan_text(planned(NEW, arrival_plans.create(NEW, "public.t", snapshot=True))) == (
        "plan for source public.s:\n"
        "  1. share: public.t joins at the next tick; the source has read nothing before it"
    )  # fmt: skip


def test_the_plan_of_a_backfill_in_words() -> None:
    arrivals = [arrival_plans.create(RUNNING, name, snapshot=True) for name in ("public.a", "public.b")]
    plan = planned(RUNNING, *arrivals, sizes={"0": 160.0}, rate=5_000)
    assert plan_text(plan) == (
        "plan for source public.s:\n"
        "  1. backfill: public.a, public.b, in one read of ticks 1 to 120: at most 999,001 records of 3 partitions, "
        "about 160 MB\n"
        "     partition 0: offsets 10 to 250,009\n"
        "     partition 1: offsets 0 to 748,999\n"
        "     partition 2: offsets 0 to 0\n"
        "     at BACKFILL RATE 5,000 at most 3 min\n"
        "  2. follow: they get the ticks that are minted meanwhile\n"
        "  3. cut over: public.a, public.b become live, each at the first tick that begins at its position"
    )


def test_the_plan_of_a_resnapshot_beside_a_table_that_begins_at_now_in_words() -> None:
    one = replace(RUNNING, last=Tick(1, START, Position({0: 11}), 1, committed=True))
    now = arrival_plans.create(one, "public.now", snapshot=False)
    again = Arrival("public.t", "backfill", START, 1, replaces=True)
    assert plan_text(planned(one, now, again, sizes={"0": 12.4}, rate=0)) == (
        "plan for source public.s:\n"
        "  1. start at now: public.now joins at the next tick, without earlier records\n"
        "  2. backfill: public.t, in one read of tick 1: at most 1 record of 1 partition, about 12 bytes\n"
        "     partition 0: offsets 10 to 10\n"
        "     it is paused: BACKFILL RATE is 0\n"
        "  3. follow: it gets the ticks that are minted meanwhile\n"
        "  4. cut over: public.t becomes live at the first tick that begins at its position\n"
        "     until then the rows of public.t stay as they are"
    )


def test_long_lists_are_cut_in_words_and_whole_in_json() -> None:
    many = replace(RUNNING, last=Tick(9, Position(), Position(dict.fromkeys(range(100), 1000)), 1, committed=True))
    plan = planned(many, *(arrival_plans.create(many, f"t{n}", snapshot=True) for n in range(10)))
    lines = plan_text(plan).splitlines()
    assert lines[1].startswith("  1. backfill: t0, t1, t2, t3, t4, t5, t6, t7 and 2 more, in one read of ticks 1 to 9:")
    assert [line.split()[0] for line in lines[2:11]] == ["partition"] * 8 + ["and"]
    assert lines[10] == "     and 92 more partitions"
    step = plan.to_json()["steps"][0]
    assert (len(step["tables"]), len(step["history"])) == (10, 100)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1 kB"), (123_456, "123 kB"), (999_600, "1 MB"), (5e12, "5 TB")],
)
def test_sizes_in_words(size: int, text: str) -> None:
    step = Backfill(("t",), Position(), Position({0: 5}), 1, 1, Estimate(5, 1, size=int(size)))
    assert f"of 1 partition, about {text}\n" in plan_text(TablePlan("s", (step,))) + "\n"


@pytest.mark.parametrize(
    ("records", "text"), [(1, "1 s"), (89_000, "89 s"), (600_000, "10 min"), (9_000_000, "2.5 h"), (7_200_000, "2 h")]
)
def test_times_in_words(records: int, text: str) -> None:
    step = Backfill(("t",), Position(), Position({0: records}), 1, 1, Estimate(records, 1, rate=1_000))
    assert plan_text(TablePlan("s", (step,))).endswith(f"at BACKFILL RATE 1,000 at most {text}")


def test_a_plan_as_json() -> None:
    arrivals = (
        arrival_plans.create(RUNNING, "public.a", snapshot=True),
        arrival_plans.create(RUNNING, "public.now", snapshot=False),
        Arrival("public.t", "backfill", START, 1, replaces=True),
    )
    written = planned(RUNNING, *arrivals, sizes={"0": 2.0, "1": 1.0, "2": 4.0}, rate=1_000).to_json()
    brought = ["public.a", "public.t"]
    assert json.loads(json.dumps(written)) == {
        "source": "public.s",
        "steps": [
            {"step": "start_at_now", "tables": ["public.now"], "position": {"0": 250_010, "1": 749_000, "2": 1}},
            {
                "step": "backfill", "tables": brought, "first_tick": 1, "last_tick": 120,
                "history": {"0": [10, 250_010], "1": [0, 749_000], "2": [0, 1]},
                "records": 999_001, "bytes": 1_249_004, "partitions": 3, "rate": 1_000, "seconds": 999.001,
            },
            {"step": "follow", "tables": brought},
            {"step": "cut_over", "tables": brought, "replaced": ["public.t"]},
        ],
    }  # fmt: skip
    shared = planned(NEW, arrival_plans.create(NEW, "public.t", snapshot=True))
    assert shared.to_json()["steps"] == [{"step": "share", "tables": ["public.t"]}]
    assert (shared.backfilled, planned(RUNNING, *arrivals).backfilled) == ((), ("public.a", "public.t"))


def test_a_plan_of_shared_tables_holds_one_step() -> None:
    arrivals = [arrival_plans.create(NEW, name, snapshot=True) for name in ("a", "b")]
    assert planned(NEW, *arrivals).steps == (ShareFromFirstTick(("a", "b")),)


@pytest.mark.parametrize(
    ("rate", "kept", "told"),
    [
        (None, 86_400, "keeps deletes for 24 h. If public.a is behind for longer, it stalls"),
        (None, 60, "keeps deletes for 60 s; the backfill may take 50 s. If public.a is behind for longer, it stalls"),
        (50, 10_800, "keeps deletes for 3 h; the backfill may take 5.5 h. If public.a is behind for longer, it stalls"),
    ],
)
def test_the_plan_warns_of_an_upstream_that_compacts(rate: int | None, kept: float, told: str) -> None:
    """Always; and it says how long the backfill may take where that is long for it."""
    arrivals = [arrival_plans.create(RUNNING, name, snapshot=True) for name in ("public.a", "public.b")]
    plan = plan_tables("public.s", RUNNING, SourceSettings(backfill_rate=rate), arrivals, {}, {"public.a": kept})
    assert plan_text(plan).splitlines()[-1] == f"  warning: the upstream compacts, and {told}"
    assert plan.to_json()["deletes_kept"] == {
        "tables": ["public.a"], "seconds": kept, "too_short": "may take" in told,
    }  # fmt: skip


def test_a_plan_without_a_backfill_warns_too() -> None:
    arrivals = [arrival_plans.create(NEW, name, snapshot=True) for name in ("a", "b")]
    plan = plan_tables("s", NEW, SourceSettings(), arrivals, {}, {"a": 3_600, "b": 3_600})
    assert plan_text(plan).splitlines()[-1] == (
        "  warning: the upstream compacts, and keeps deletes for 60 min. If a, b are behind for longer, they stall"
    )
    assert planned(NEW, *arrivals).deletes is None


def test_the_plan_of_tables_that_begin_with_a_snapshot() -> None:
    state = replace(NEW, by_snapshot=True)
    plan = planned(state, *(arrival_plans.create(state, name, snapshot=True) for name in ("a", "b")))
    assert plan.steps == (Snapshot(("a", "b")), Follow(("a", "b")), CutOver(("a", "b")))
    assert plan.backfilled == ("a", "b")
    assert (
        plan_text(plan).splitlines()[1] == "  1. snapshot: a, b are read from the upstream's tables, as of one moment"
    )
    assert plan.to_json()["steps"][0] == {"step": "snapshot", "tables": ["a", "b"]}
