"""Tables that begin with a snapshot: random worlds, each rule left out, and the decisions one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import arrival_plans, backfill_rules, rules, snapshots
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Done,
    Holder,
    Lease,
    Left,
    Snapshot,
    SourceState,
    TableState,
    Tick,
)
from airflow_provider_mzshare.errors import Fenced, LogConflict
from tests.support.snapshot_catalog import Mutant
from tests.support.snapshot_database import Violation
from tests.support.snapshot_world import run

SEEDS, SEEDS_OF_A_MUTANT = 50, 400
SHOWN = {
    "cutovers", "crashes", "fenced", "files replaced", "groups below H", "landed late", "late", "merges",
    "resumed before H", "resumed before its snapshot", "snapshots beside a pending tick", "snapshots landed",
    "snapshots lost", "snapshots taken", "waits for H", "waits for writers",
}  # fmt: skip


def test_every_readable_tick_is_what_all_transactions_before_its_end_make() -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        counts += run(seed).catalog.counts
    assert counts.keys() >= SHOWN
    assert counts["checks"] > 20 * SEEDS


@pytest.mark.parametrize("mutant", [mutant for mutant in Mutant if mutant is not Mutant.NONE], ids=lambda one: one.name)
def test_each_rule_is_needed(mutant: Mutant) -> None:
    for seed in range(SEEDS_OF_A_MUTANT):
        try:
            run(seed, mutant)
        except Violation:
            return
    raise AssertionError(f"no world shows that {mutant.value}")


# ── one by one ────────────────────────────────────────────────────────────────────────────────────────────────────────

B1, HOLDER, U2, U3 = BackfillId("b-1"), Holder(JobId("fill-1"), 1), ItemId("u2"), ItemId("u3")


def at(lsn: int) -> Position:
    return Position({"lsn": lsn})


LAST = Tick(3, at(100), at(200), 1003, committed=True)
SNAPSHOT = Snapshot(SnapshotId("s-1"), 3, 1003, at(200), at(260), "700:705:701,703")
WAITING = TableState(
    U2, "backfilling", 1, 1, at(200), at(200), next_tick=4, backfill_id=B1, keyed=True, awaits_snapshot=True
)
STATE = SourceState(
    ItemId("u1"),
    "active",
    "upstream-1",
    at(50),
    last=LAST,
    tables={U2: WAITING},
    backfills={B1: BackfillState(B1, 3, Lease(1, HOLDER.job_id))},
    by_snapshot=True,
)


def landed() -> SourceState:
    followed = snapshots.land(STATE, B1, HOLDER, {U2: Landed(SNAPSHOT)})
    return backfill_rules.with_arrivals(STATE, followed.tables)


@pytest.mark.parametrize("last", [None, LAST])
def test_a_table_is_always_backfilled_from_the_end_of_the_log(last: Tick | None) -> None:
    arrival = arrival_plans.create(replace(STATE, last=last), "t", snapshot=True)
    assert (arrival.way, arrival.by_snapshot) == ("backfill", True)
    assert (arrival.position, arrival.tick) == ((at(200), 4) if last else (at(50), 1))
    arrival_plans.check_current(replace(STATE, last=LAST), arrival)  # it may be carried out when the log has gone on


def test_a_new_generation_begins_with_another_snapshot() -> None:
    live = replace(WAITING, status="live", awaits_snapshot=False, backfill_id=None, upper=1004, since=1003)
    state = replace(STATE, tables={U2: live}, backfills={})
    arrival = arrival_plans.resnapshot(state, U2, "t", start_tick=1)
    assert (arrival.by_snapshot, arrival.position, arrival.tick) == (True, at(200), 4)
    assert arrival_plans.without_gone(arrival, at(500), ()) == arrival


@pytest.mark.parametrize(("upper", "base"), [(at(50), False), (at(51), True)])
def test_no_snapshot_is_taken_while_the_log_is_at_its_start(upper: Position, base: bool) -> None:
    state = replace(STATE, last=replace(LAST, lower=at(50), upper=upper))
    assert (snapshots.base_tick(state) is not None) is base


def test_a_pending_tick_is_no_obstacle() -> None:
    pending = Tick(4, at(200), at(300), 1004)
    assert snapshots.base_tick(replace(STATE, pending=(pending,))) == LAST


def test_a_snapshot_is_taken_under_the_lease_for_tables_that_still_wait() -> None:
    assert snapshots.taking(STATE, B1, HOLDER, SNAPSHOT, LAST, [U2, U3]) == [WAITING]
    assert snapshots.taking(landed(), B1, HOLDER, SNAPSHOT, LAST, [U2]) == []
    with pytest.raises(Fenced):
        snapshots.taking(STATE, B1, replace(HOLDER, epoch=2), SNAPSHOT, LAST, [U2])
    for tick in (None, replace(LAST, committed=False), replace(LAST, upper=at(201))):
        with pytest.raises(LogConflict, match=r"tick 3 is not the one that snapshot s-1 was taken at"):
            snapshots.taking(STATE, B1, HOLDER, SNAPSHOT, tick, [U2])


def test_a_table_with_its_snapshot_goes_on_after_the_tick_and_is_not_readable() -> None:
    table = landed().tables[U2]
    assert (table.position, table.next_tick, table.known_from) == (at(200), 4, at(260))
    assert (table.upper, table.since, table.snapshot) == (0, 0, SNAPSHOT)
    with pytest.raises(LogConflict, match="table u2 has its snapshot already"):
        snapshots.land(landed(), B1, HOLDER, {U2: Landed(SNAPSHOT)})


def test_it_follows_nothing_before() -> None:
    with pytest.raises(LogConflict, match="has no snapshot yet"):
        backfill_rules.follow(STATE, B1, HOLDER, first=4, last=replace(LAST, number=4), outcomes={U2: Done()})
    assert backfill_rules.arm(STATE, U2, max_lag=9) is None


def test_it_is_neither_cut_over_nor_readable_before_h_and_both_from_there_on() -> None:
    below = Tick(4, at(200), at(259), 1004, committed=True)
    state = replace(landed(), last=below)
    moved = backfill_rules.follow(state, B1, HOLDER, first=4, last=below, outcomes={U2: Done()}).tables
    state = backfill_rules.with_arrivals(state, moved)
    assert moved[U2].upper == 0
    assert snapshots.left_out(moved[U2]) == SNAPSHOT
    assert backfill_rules.arm(state, U2, max_lag=9) is None
    beyond = Tick(5, at(259), at(260), 1005, committed=True)
    state = replace(state, last=beyond)
    moved = backfill_rules.follow(state, B1, HOLDER, first=5, last=beyond, outcomes={U2: Done()}).tables
    assert (moved[U2].since, moved[U2].upper) == (1005, 1006)
    assert snapshots.left_out(moved[U2]) is None
    armed = backfill_rules.arm(backfill_rules.with_arrivals(state, moved), U2, max_lag=0)
    assert armed is not None
    assert rules.stands_at_end(state, armed)


@pytest.mark.parametrize("before", ["its snapshot", "H"])
def test_a_table_that_stalls_keeps_what_it_needs(before: str) -> None:
    state = STATE if before == "its snapshot" else landed()
    table = rules.stalled(state.tables[U2], "disk")
    again = backfill_rules.resume(table, BackfillId("b-2"))
    assert again.awaits_snapshot is (before == "its snapshot")
    assert snapshots.left_out(again) == (None if before == "its snapshot" else SNAPSHOT)


def test_a_table_that_cannot_be_read_stalls_alone() -> None:
    other = replace(WAITING, table_id=U3)
    state = replace(STATE, tables={U2: WAITING, U3: other})
    moved = snapshots.land(state, B1, HOLDER, {U2: Left("column a"), U3: Landed(SNAPSHOT)}).tables
    assert (moved[U2].status, moved[U2].reason, moved[U3].status) == ("stalled", "column a", "backfilling")


def test_a_snapshot_is_read_back_as_its_commit_says_it() -> None:
    assert Snapshot.from_json(SNAPSHOT.to_json()) == SNAPSHOT
