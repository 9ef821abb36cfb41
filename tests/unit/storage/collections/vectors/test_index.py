"""The index against a dict: whatever is done to it, it finds what the dict has, in memory and in mapped files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from airflow_provider_mzshare.storage.collections.vectors import index as module
from airflow_provider_mzshare.storage.collections.vectors.index import (
    GONE,
    MAX_FILES,
    IndexBuilder,
    IndexDisagrees,
    KeyIndex,
    files_of,
    locations_of,
    rows_of,
)

Pair = tuple[int, int]
"""A hash and a location."""


def words(values: object) -> np.ndarray:
    return np.array(list(values), np.uint64)  # type: ignore[call-overload]


def at(file: int, row: int) -> int:
    return file << 32 | row


def found(index: KeyIndex, hashes: list[int]) -> Counter[Pair]:
    places, locations = index.find(words(hashes))
    return Counter((hashes[place], int(location)) for place, location in zip(places, locations, strict=True))


def filled(pairs: list[Pair], folder: Path | None = None) -> KeyIndex:
    index = KeyIndex(folder)
    index.add(words(h for h, _ in pairs), words(where for _, where in pairs))
    return index


@pytest.fixture(params=[False, True], ids=["memory", "mapped"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param else None


# ── one thing after the other ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_location_is_a_file_and_a_row() -> None:
    rows = np.array([0, 1, 2**32 - 1])
    for number in (0, 1, MAX_FILES - 1):
        locations = locations_of(number, rows)
        assert files_of(locations).tolist() == [number] * 3
        assert rows_of(locations).tolist() == rows.tolist()
        assert GONE not in locations
    for number in (-1, MAX_FILES):
        with pytest.raises(ValueError, match="file number"):
            locations_of(number, rows)


def test_all_rows_of_a_hash_are_candidates(folder: Path | None) -> None:
    index = filled([(7, at(0, 0)), (7, at(0, 1)), (8, at(0, 2))], folder)
    index.add(words([7, 2**64 - 1, 0]), words([at(1, 0), at(1, 1), at(1, 2)]))
    assert found(index, [9, 7, 0, 2**64 - 1, 7]) == Counter(
        {(7, at(0, 0)): 2, (7, at(0, 1)): 2, (7, at(1, 0)): 2, (0, at(1, 2)): 1, (2**64 - 1, at(1, 1)): 1}
    )
    assert len(index) == 6
    assert found(index, []) == Counter()


def test_what_was_dropped_is_not_found_and_what_was_moved_is_found_elsewhere(folder: Path | None) -> None:
    index = filled([(7, at(0, row)) for row in range(3)], folder)
    index.drop(words([7]), words([at(0, 1)]))
    index.move(words([7]), words([at(0, 2)]), words([at(5, 0)]))
    assert set(found(index, [7])) == {(7, at(0, 0)), (7, at(5, 0))}
    assert len(index) == 2


@pytest.mark.parametrize(
    ("hashes", "locations"),
    [([7, 8], [0, 9]), ([7, 7], [0, 0]), ([8], [0]), ([7, 9], [0, 1])],
    ids=["no such row", "twice", "another hash", "hashes that are not there"],
)
def test_an_index_that_disagrees_says_so_and_changes_nothing(
    folder: Path | None, hashes: list[int], locations: list[int]
) -> None:
    index = filled([(7, 0), (8, 1)], folder)
    for change in (index.drop, lambda h, w: index.move(h, w, w + np.uint64(at(3, 0)))):
        with pytest.raises(IndexDisagrees):
            change(words(hashes), words(locations))
    assert set(found(index, [7, 8])) == {(7, 0), (8, 1)}


def test_what_was_dropped_cannot_be_dropped_again(folder: Path | None) -> None:
    index = filled([(7, 0), (8, 1), (9, 2)], folder)
    index.drop(words([7]), words([0]))
    with pytest.raises(IndexDisagrees, match="of 2 rows that are to leave their places, 1 are there"):
        index.drop(words([8, 7]), words([1, 0]))
    assert set(found(index, [7, 8, 9])) == {(8, 1), (9, 2)}


def test_no_row_is_at_no_location() -> None:
    index = filled([(7, 0)])
    for change in (index.add, index.drop):
        with pytest.raises(ValueError, match="each hash has a location"):
            change(words([7]), words([GONE]))
        with pytest.raises(ValueError, match="each hash has a location"):
            change(words([7]), words([1, 2]))
    with pytest.raises(ValueError, match="each hash has a location"):
        index.move(words([7]), words([0]), words([GONE]))
    assert set(found(index, [7])) == {(7, 0)}


def test_a_closed_index_does_not_say_that_there_is_no_such_key(folder: Path | None) -> None:
    index = filled([(7, 0)], folder)
    index.close()
    index.close()
    assert index.memory_bytes == index.disk_bytes == 0
    with pytest.raises(ValueError, match="closed"):
        index.find(words([7]))


def test_a_row_that_a_file_does_not_have_is_no_place_to_move_from() -> None:
    index = filled([(7, at(0, 3))])
    with pytest.raises(ValueError, match="rows that the files have not"):
        index.remap({0: words([at(1, 0)])})


def test_files_that_are_far_apart_or_unknown_are_no_matter(folder: Path | None) -> None:
    index = filled([(n, at(n * 1000, 0)) for n in range(5)], folder)
    index.drop_files([500, 1000, 3000, 4_000_000])
    assert set(found(index, list(range(5)))) == {(n, at(n * 1000, 0)) for n in (0, 2, 4)}
    index.drop_files([])
    index.drop_rows(words([]))
    index.remap({})
    assert len(index) == 3
    with pytest.raises(ValueError, match="file number"):
        index.drop_files([MAX_FILES])


def test_young_runs_are_merged_and_what_is_gone_gives_its_room_back(
    folder: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SMALL_RUN", 4)
    monkeypatch.setattr(module, "_PART", 7)
    index = filled([(n, at(0, n)) for n in range(1000)], folder)
    for file in range(1, 100):
        index.add(words([file * 7]), words([at(file, 0)]))
        assert len(index._runs) <= 6
    before = index.memory_bytes + index.disk_bytes
    assert before == 16 * len(index)
    index.drop(words(range(600)), words(at(0, n) for n in range(600)))
    assert index.memory_bytes + index.disk_bytes < before - 16 * 400
    assert len(index) == 499
    index.drop_files(range(100))
    assert (len(index), index._runs) == (0, [])
    assert index.memory_bytes == index.disk_bytes == 0


def test_mapped_arrays_have_no_name_that_could_be_left_behind(tmp_path: Path) -> None:
    index = filled([(n, n) for n in range(100)], tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert (index.disk_bytes, index.memory_bytes) == (1600, 0)
    assert filled([(1, 1)]).memory_bytes == 16


@pytest.mark.parametrize("part", [1, 3, 1 << 20])
def test_a_built_index_has_all_that_was_added_in_any_order(
    folder: Path | None, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(module, "_BUILD_PART", part)
    random = np.random.default_rng(1)
    hashes = random.integers(0, 2**64, 300, np.uint64)
    hashes[:20] = hashes[20:40]
    builder = IndexBuilder(folder)
    for begin in range(0, 300, 7):
        some = hashes[begin : begin + 7]
        builder.add(some, locations_of(begin, np.arange(some.size)))
    index = builder.finish()
    assert len(index) == 300
    wanted = Counter((int(h), at(n // 7 * 7, n % 7)) for n, h in enumerate(hashes))
    assert found(index, sorted({int(h) for h in hashes})) == wanted
    assert list(folder.iterdir()) == [] if folder else True


# ── against a dict ────────────────────────────────────────────────────────────────────────────────────────────────────

RANDOM = st.integers(0, 2**32).map(Random)


class Machine(RuleBasedStateMachine):
    """Few hashes, so that most of them are shared by rows; small parts, so that every border is met."""

    folder: Path | None = None

    @initialize(hashes=st.sampled_from([2, 5, 10**6]))
    def begin(self, hashes: int) -> None:
        self.hashes, self.next = hashes, 0
        self.index = KeyIndex(self.folder)
        self.rows: dict[int, int] = {}
        """The hash of the row at a location."""

    def hash_of(self, number: int) -> int:
        return (number % self.hashes) * 0x9E3779B97F4A7C15 % 2**64

    def some(self, random: Random) -> list[int]:
        return random.sample(sorted(self.rows), random.randint(0, min(20, len(self.rows))))

    @rule(numbers=st.lists(st.integers(0, 50), max_size=12))
    def add_a_file(self, numbers: list[int]) -> None:
        hashes = [self.hash_of(number) for number in numbers]
        where = [at(self.next, row) for row in range(len(numbers))]
        self.index.add(words(hashes), words(where))
        self.rows |= dict(zip(where, hashes, strict=True))
        self.next += 1

    @rule(random=RANDOM)
    def drop(self, random: Random) -> None:
        where = self.some(random)
        self.index.drop(words(self.rows[each] for each in where), words(where))
        for each in where:
            del self.rows[each]

    @rule(random=RANDOM)
    def move(self, random: Random) -> None:
        where = self.some(random)
        new = [at(self.next, row) for row in range(len(where))]
        self.index.move(words(self.rows[each] for each in where), words(where), words(new))
        self.rows |= {there: self.rows.pop(here) for here, there in zip(where, new, strict=True)}
        self.next += 1

    @rule(random=RANDOM)
    def drop_rows(self, random: Random) -> None:
        """As a vector that adds up: places without a row are among them."""
        where = self.some(random) + [at(random.randint(0, self.next), random.randrange(60)) for _ in range(3)]
        self.index.drop_rows(words(where))
        for each in where:
            self.rows.pop(each, None)

    @rule(random=RANDOM)
    def drop_files(self, random: Random) -> None:
        numbers = [random.randint(0, self.next + 3) for _ in range(random.randrange(3))]
        self.index.drop_files(numbers)
        self.rows = {where: h for where, h in self.rows.items() if where >> 32 not in numbers}

    @rule(random=RANDOM)
    def remap(self, random: Random) -> None:
        """A compaction; a row that has left already may have a place in the new file, too."""
        numbers = random.sample(range(self.next), random.randint(0, min(3, self.next)))
        mapping, moved, taken = {}, dict(self.rows), 0
        for number in numbers:
            targets = []
            last = max((where & 0xFFFFFFFF for where in self.rows if where >> 32 == number), default=0)
            for row in range(last + random.randint(1, 4)):
                leaves = random.random() < 0.3
                targets.append(int(GONE) if leaves else at(self.next, taken))
                taken += not leaves
                if (h := moved.pop(at(number, row), None)) is not None and not leaves:
                    moved[targets[-1]] = h
            mapping[number] = words(targets)
        self.index.remap(mapping)
        self.rows = moved
        self.next += 1

    @invariant()
    def holds_what_the_dict_has(self) -> None:
        asked = sorted({self.hash_of(number) for number in range(51)})
        assert found(self.index, asked) == Counter((h, where) for where, h in self.rows.items())
        assert len(self.index) == len(self.rows)


@pytest.mark.parametrize("part", [5, 1 << 18])
def test_whatever_is_done_the_index_agrees_with_a_dict(
    folder: Path | None, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(module, "_PART", part)
    monkeypatch.setattr(module, "_SMALL_RUN", 8)
    monkeypatch.setattr(module, "_GROWTH", 2)
    made = type("Made", (Machine,), {"folder": folder})
    run_state_machine_as_test(made, settings=settings(max_examples=25, stateful_step_count=20, deadline=None))
