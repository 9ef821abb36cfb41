"""Which backfills become one, and what they are then: each table goes on exactly as it would have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import BackfillState, Lease, SourceState, TableState, Tick

B1, B2, B3 = BackfillId("b-1"), BackfillId("b-2"), BackfillId("b-3")


def table(number: int, backfill: BackfillId, *, at: int = 0, status: str = "backfilling") -> TableState:
    return TableState(
        ItemId(f"u{number}"),
        status,  # type: ignore[arg-type]
        1,
        1,
        Position(),
        Position({"0": at}),
        next_tick=at // 10 + 1,
        backfill_id=backfill,
    )


def source(*tables: TableState, **backfills: object) -> SourceState:
    """Ten ticks of ten offsets. Backfills are as old as their names say, and one's history is as many ticks."""
    named = {name: BackfillState(name, int(name[-1]), asked_at=int(name[-1])) for name in (B1, B2, B3)}
    last = Tick(10, Position({"0": 90}), Position({"0": 100}), 1000, committed=True)
    own = {t.backfill_id for t in tables}
    return SourceState(
        ItemId("u1"),
        "active",
        "id",
        Position(),
        last=last,
        tables={t.table_id: t for t in tables},
        backfills={name: one for name, one in named.items() if name in own},
    )


def groups(state: SourceState) -> list[tuple[BackfillId, ...]]:
    return backfill_rules.merging(state, state.backfills)


def test_those_that_nobody_has_held_become_one_and_the_newest_takes_them() -> None:
    state = source(table(2, B2), table(3, B3), table(4, B1))
    assert groups(state) == [(B1, B2, B3)]
    assert backfill_rules.merging(state, [B3, B1]) == [(B1, B3)], "only those that no app was started for"
    assert groups(source(table(2, B1))) == []


@pytest.mark.parametrize("touched", [{"lease": Lease(1, JobId("j"), 4)}, {"lease": Lease(1, None, 4)}, {"alone": True}])
def test_what_was_held_or_was_split_off_stays_by_itself(touched: dict[str, object]) -> None:
    state = source(table(2, B1), table(3, B2), table(4, B3))
    changed = replace(state, backfills={**state.backfills, B2: replace(state.backfills[B2], **touched)})  # type: ignore[arg-type]
    assert groups(changed) == [(B1, B3)]


@pytest.mark.parametrize(("at", "together"), [(0, True), (50, True), (51, False), (99, False)])
def test_none_waits_for_more_than_it_has_to_read_itself(at: int, together: bool) -> None:
    """One that heals close to the end of the log would else wait for the whole history of a new one."""
    state = source(table(2, B1), table(3, B2, at=at))
    assert groups(state) == ([(B1, B2)] if together else [])


def test_those_close_to_the_end_become_one_of_their_own() -> None:
    near = [table(3, B2, at=95), table(4, B3, at=90)]
    assert groups(source(table(2, B1), *near)) == [(B2, B3)]
    assert groups(source(*(table(n, b, at=100) for n, b in enumerate((B1, B2), start=2)))) == [(B1, B2)], "nothing left"


def test_every_table_keeps_where_it_stands_and_what_could_be_read_of_it() -> None:
    state = source(table(2, B1, at=10), table(3, B1, at=30, status="converging"), table(4, B2))
    heals = replace(state.backfills[B1], healing=frozenset({ItemId("u2"), ItemId("gone")}), history=9)
    state = replace(state, backfills={**state.backfills, B1: heals})
    after = backfill_rules.with_merged(state, (B1, B2))
    assert list(after.backfills) == [B2]
    assert after.backfills[B2] == replace(state.backfills[B2], history=9, healing=frozenset({ItemId("u2")}))
    assert after.tables == {t: replace(one, backfill_id=B2) for t, one in state.tables.items()}


def test_a_new_generation_goes_along_beside_the_current_one() -> None:
    state = source(table(2, B2), table(3, B1))
    live = replace(state.tables[ItemId("u3")], status="live", backfill_id=None)
    new = replace(state.tables[ItemId("u3")], generation=2)
    state = replace(state, tables={**state.tables, live.table_id: live}, replacements={live.table_id: new})
    after = backfill_rules.with_merged(state, groups(state)[0])
    assert after.replacements[live.table_id] == replace(new, backfill_id=B2)
    assert after.tables[live.table_id] == live
