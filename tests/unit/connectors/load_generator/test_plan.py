"""How far a generator's clock has come, and how a reader gets there."""

from __future__ import annotations

import random

import pytest

from airflow_provider_mzshare.connectors.load_generator.plan import (
    GeneratorPlan,
    Range,
    new_incarnation,
    ranges_of,
    read_incarnation,
)
from airflow_provider_mzshare.connectors.spans import split

BEGIN = 1_000_000


def plan_for(generator: str = "counter", **changes: int | None) -> GeneratorPlan:
    given = {
        "seed": 0, "begin_ms": BEGIN, "tick_interval_ms": 100, "batch_size": 1, "up_to": None, "keys": 5,
        "value_size": 8, "key_value_partitions": 1,
    }  # fmt: skip
    return GeneratorPlan(generator, **{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("passed", "batch_size", "up_to", "end"),
    [
        (-5_000, 1, None, 0), (0, 1, None, 0), (99, 1, None, 0), (100, 1, None, 1), (1_000, 1, None, 10),
        (1_000, 7, None, 70), (1_000, 7, 68, 68), (10**9, 7, 0, 0),
    ],
)  # fmt: skip
def test_the_clock(passed: int, batch_size: int, up_to: int | None, end: int) -> None:
    assert plan_for(batch_size=batch_size, up_to=up_to).end(BEGIN + passed) == end


def test_a_clock_that_goes_back_takes_nothing_back() -> None:
    plan = plan_for()
    at = plan.next_end({}, BEGIN + 1_000, 100)
    assert at == {0: 10}
    assert plan.next_end(at, BEGIN + 500, 100) == at


@pytest.mark.parametrize("seed", range(30))
def test_a_reader_gets_everywhere_with_batches_no_larger_than_asked(seed: int) -> None:
    chance = random.Random(seed)
    up_to = chance.choice([None, chance.randrange(1, 200)])
    plan = plan_for(
        chance.choice(["auction", "key_value", "counter"]),
        batch_size=chance.randrange(1, 20),
        up_to=up_to,
        key_value_partitions=chance.randrange(1, 6),
    )
    most, now, at = chance.randrange(1, 40), BEGIN, dict.fromkeys(plan.partitions, 0)
    for _ in range(300):
        now += chance.randrange(200)
        upper = plan.next_end(at, now, most)
        taken = sum(upper[p] - at[p] for p in upper)
        backlog = sum(plan.end(now) - at[p] for p in at)
        assert all(at[p] <= upper[p] <= plan.end(now) for p in upper)
        assert taken == min(most, backlog), "all there is, or as much as is allowed"
        at = upper


def test_splits_cover_the_range_evenly() -> None:
    assert split(ranges_of({}, {0: 10, 1: 10}), 2) == [(Range(0, 0, 10),), (Range(1, 0, 10),)]
    assert split(ranges_of({0: 4, 1: 9}, {0: 10, 1: 9, 2: 2}), 3) == [
        (Range(0, 4, 7),), (Range(0, 7, 10),), (Range(2, 0, 2),)
    ]  # fmt: skip
    assert split(ranges_of({}, {0: 3, 1: 3}), 1) == [(Range(0, 0, 3), Range(1, 0, 3))]
    assert split(ranges_of({0: 3}, {0: 3}), 4) == []
    assert [len(share) for share in split([Range(0, 0, 250_000), Range(1, 0, 1)])] == [1, 1, 2], "as many as is best"


def test_an_incarnation_tells_when_the_clock_began() -> None:
    one, other = new_incarnation(123), new_incarnation(123)
    assert one != other
    assert read_incarnation(one) == (1, 123)
    assert read_incarnation("topic-id") is None


def test_a_plan_travels() -> None:
    plan = plan_for("key_value", up_to=3)
    assert GeneratorPlan.from_json(plan.to_json()) == plan
