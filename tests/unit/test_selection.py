"""The parts of a long run: each test is in one of them, and they take about the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.selection import TESTS, choose


@dataclass(eq=False)
class Item:
    """As much of a test as the selection looks at."""

    nodeid: str
    marks: dict[str, pytest.Mark] = field(default_factory=dict)
    path: Path = TESTS / "unit" / "test_x.py"

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)

    def add_marker(self, mark: object) -> None:
        raise AssertionError(f"{self.nodeid} needs no {mark}")


def long(number: int, seconds: float) -> Item:
    return Item(f"long-{number}", {"full": pytest.mark.full(seconds=seconds).mark})


@given(st.lists(st.integers(1, 1_000), max_size=30), st.integers(1, 6))
def test_each_long_test_is_in_one_part_and_no_part_is_longer_than_need_be(seconds: list[int], parts: int) -> None:
    items = [long(number, took) for number, took in enumerate(seconds)]
    took = {item.nodeid: each for item, each in zip(items, seconds, strict=True)}
    chosen = [choose(items, f"{number}/{parts}")[0] for number in range(1, parts + 1)]  # type: ignore[arg-type]
    assert sorted(item.nodeid for part in chosen for item in part) == sorted(took)
    lengths = [sum(took[item.nodeid] for item in part) for part in chosen]
    assert max(lengths) <= sum(seconds) / parts + max(seconds, default=0)


def test_a_part_leaves_short_tests_alone() -> None:
    short, other = Item("short"), long(1, 5)
    assert choose([short, other], "1/2")[0] == [short, other]  # type: ignore[list-item]
    assert choose([short, other], "2/2") == ([short], [other])  # type: ignore[list-item]


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "a/b", "1/2/3"])
def test_what_is_no_part_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"--part {part}: "):
        choose([], part)
