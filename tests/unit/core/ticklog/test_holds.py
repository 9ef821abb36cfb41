"""Read holds: a model in which holders, restarts, zombies and maintenance meet by chance, and the rules one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import holds
from airflow_provider_mzshare.core.ticklog.holds import (
    Held,
    Hold,
    HoldDropped,
    HoldRefused,
    HoldTakenOver,
    Wanted,
)
from airflow_provider_mzshare.errors import MzShareError, NotReadable
from tests.support.hold_model import Model, Mutant, Violation

SEEDS = 600
TABLE = Held(ItemId("u1"), "public.t", since=100, upper=200)
WANTED = Wanted("loader", None, "etl", "claim-1", 30_000)


# ── by chance ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_holds_can_read_and_the_dead_hold_nothing() -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        model = Model(seed)
        try:
            model.run()
        except Violation as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        counts.update(model.counts)
    assert all(counts[event] > SEEDS for event in ("taken", "gone on", "dropped", "taken over", "refused")), counts


@pytest.mark.parametrize("mutant", [mutant for mutant in Mutant if mutant is not Mutant.NONE])
def test_a_rule_that_is_left_out_is_noticed(mutant: Mutant) -> None:
    for seed in range(SEEDS):
        try:
            Model(seed, mutant).run()
        except Violation:
            return
    pytest.fail(f"nobody noticed: {mutant.value}")


# ── one by one ────────────────────────────────────────────────────────────────────────────────────────────────────────


def taken(**wanted: object) -> Hold:
    return holds.take(None, TABLE, replace(WANTED, **wanted), now=1_000)


def test_a_new_hold_stands_where_it_is_asked_for_or_where_the_table_is() -> None:
    assert (taken().at, taken(at=100).at, taken(at=150).at) == (199, 100, 150)
    assert (taken().taken_at, taken().heartbeat, taken().dropped_at) == (1_000, 1_000, None)


@pytest.mark.parametrize(
    ("held", "wanted", "error", "says"),
    [
        (TABLE, {"at": 99}, NotReadable, "cannot be held at 99, which is gone or never was: it can be read from 100"),
        (TABLE, {"at": 200}, NotReadable, "cannot be held at 200, which is not final yet"),
        (replace(TABLE, upper=0, since=0), {}, NotReadable, "no committed tick yet"),
        (replace(TABLE, filling=True), {}, HoldRefused, "while a backfill fills it"),
        (replace(TABLE, dropped=True), {}, HoldRefused, "was dropped"),
        (TABLE, {"name": ""}, HoldRefused, "the name of a hold has 1 to 1,000 bytes, and this one has 0"),
        (TABLE, {"name": "ö" * 501}, HoldRefused, "the name of a hold has 1 to 1,000 bytes, and this one has 1,002"),
        (TABLE, {"name": "a\0b"}, HoldRefused, "the name of a hold has no control characters"),
        (TABLE, {"name": "\ud800"}, HoldRefused, "the name of a hold has no control characters"),
        (TABLE, {"limit_ms": 0}, HoldRefused, "the limit of a hold"),
        (TABLE, {"limit_ms": holds.LONGEST_LIMIT_MS + 1}, HoldRefused, "the limit of a hold"),
    ],
)
def test_what_cannot_be_held_is_refused(
    held: Held, wanted: dict[str, object], error: type[MzShareError], says: str
) -> None:
    with pytest.raises(error, match=says):
        holds.take(None, held, replace(WANTED, **wanted), now=1_000)


def test_a_hold_that_stands_is_found_again_whatever_its_name() -> None:
    before = replace(taken(), name="x" * 2_000)
    assert holds.take(before, TABLE, replace(WANTED, name=before.name), now=2_000).at == before.at


def test_whoever_comes_back_goes_on_where_the_hold_stands_and_the_one_before_has_lost_it() -> None:
    before = holds.move(taken(at=120), TABLE, "claim-1", 150, now=2_000)
    again = replace(WANTED, claim="claim-2", holder="etl again", limit_ms=60_000)
    after = holds.take(before, TABLE, again, now=3_000)
    assert (after.at, after.holder, after.limit_ms, after.heartbeat, after.taken_at) == (
        150, "etl again", 60_000, 3_000, 1_000,
    )  # fmt: skip
    with pytest.raises(HoldTakenOver, match=r"'loader' was taken over by etl again: it stands on public\.t at 150"):
        holds.refresh(after, TABLE, "claim-1", now=4_000)
    assert holds.refresh(after, TABLE, "claim-2", now=4_000).heartbeat == 4_000


def test_a_hold_goes_forward_only() -> None:
    hold = taken(at=150)
    assert holds.move(hold, TABLE, "claim-1", 150, now=1) == hold, "and a clock that was set back changes nothing"
    for back in (
        lambda: holds.move(hold, TABLE, "claim-1", 149, 0),
        lambda: holds.take(hold, TABLE, replace(WANTED, at=149), 0),
    ):
        with pytest.raises(HoldRefused, match="stands at 150 and cannot go back to 149"):
            back()
    with pytest.raises(NotReadable, match="not final yet"):
        holds.move(hold, TABLE, "claim-1", 200, now=0)


def test_a_name_is_for_one_table() -> None:
    with pytest.raises(HoldRefused, match=r"'loader' of etl stands on table u1, and public\.t is table u2"):
        holds.take(taken(), replace(TABLE, table_id=ItemId("u2")), WANTED, now=0)


def test_a_holder_is_dead_after_its_limit_and_not_before() -> None:
    hold = taken()
    assert holds.dead([hold], now=31_000) == []
    (dropped,) = holds.dead([hold], now=31_001)
    assert (dropped.dropped_at, dropped.why) == (31_001, "etl was not heard of for 30 s")
    assert holds.dead([dropped], now=99_000) == [], "once"
    late = holds.refresh(hold, TABLE, "claim-1", now=99_000)
    assert holds.dead([late], now=99_000) == [], "nobody had dropped it yet"


def test_a_dropped_hold_is_told_and_never_goes_on_by_itself() -> None:
    (dropped,) = holds.dead([taken(at=150)], now=40_000)
    for step in (
        lambda: holds.refresh(dropped, TABLE, "claim-1", now=40_001),
        lambda: holds.move(dropped, TABLE, "claim-1", 160, now=40_001),
        lambda: holds.release(dropped, TABLE, "claim-1"),
        lambda: holds.take(dropped, TABLE, replace(WANTED, claim="claim-2"), now=40_001),
    ):
        with pytest.raises(HoldDropped) as told:
            step()
        assert told.value.can_go_on
        assert told.value.line == (
            "the hold 'loader' on public.t at 150 was dropped at 40000: etl was not heard of for 30 s; "
            "public.t can still be read from 150 on. Try: take it again with at=150"
        )
    again = holds.take(dropped, TABLE, replace(WANTED, at=150, claim="claim-2"), now=40_001)
    assert (again.at, again.taken_at, again.dropped_at, again.why) == (150, 40_001, None, None)


def test_what_is_gone_by_then_is_told() -> None:
    (dropped,) = holds.dead([taken(at=150)], now=40_000)
    later = replace(TABLE, since=170)
    with pytest.raises(HoldDropped, match=r"public\.t can now be read from 170 on") as told:
        holds.refresh(dropped, later, "claim-1", now=40_001)
    assert not told.value.can_go_on
    with pytest.raises(NotReadable, match="cannot be held at 150"):
        holds.take(dropped, later, replace(WANTED, at=150), now=40_001)
    with pytest.raises(HoldDropped, match="its table was dropped") as gone:
        holds.refresh(holds.drop(taken(), 1, "its table was dropped"), replace(TABLE, dropped=True), "claim-1", now=2)
    assert gone.value.hint == "mzshare holds drop loader"


def test_the_oldest_hold_of_a_table_counts() -> None:
    other = replace(taken(at=110), name="b", table_id=ItemId("u2"))
    dropped = holds.drop(replace(taken(at=101), name="c"), 1, "by hand")
    assert holds.oldest([taken(at=150), replace(taken(at=120), name="d"), other, dropped]) == {"u1": 120, "u2": 110}
