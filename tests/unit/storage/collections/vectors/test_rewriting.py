"""Which files a compaction takes, and what it costs a row over the life of a table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from airflow_provider_mzshare.storage.collections.vectors.bitmaps import bitmap_of, vector_file
from airflow_provider_mzshare.storage.collections.vectors.index import GONE, locations_of
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewritten, choose

TARGET = 1000


def file(name: str, size: int, rows: int | None = 100, deleted: int = 0) -> LiveFile:
    stats = "" if rows is None else json.dumps({"numRecords": rows})
    vector = vector_file([bitmap_of(np.arange(deleted))]).vectors[0] if deleted else None
    return LiveFile(name, size, stats, 0, vector)


def chosen(*files: LiveFile, min_files: int = 3) -> set[str]:
    return {each.path for each in choose(files, min_files=min_files, target_size=TARGET)}


def test_small_files_are_merged_once_there_are_enough() -> None:
    files = [file(name, 10) for name in "abcd"]
    assert chosen(*files) == set("abcd")
    assert chosen(*files[:3]) == set("abc")
    assert chosen(*files[:2]) == set()
    assert chosen() == set()
    assert chosen(files[0], min_files=1) == set(), "one file alone becomes no better"


def test_a_file_of_the_target_size_is_left_alone_until_it_is_worn() -> None:
    small = [file(name, 10) for name in "abc"]
    assert chosen(*small, file("large", TARGET)) == set("abc")
    assert chosen(*small[:1], file("large", TARGET, deleted=19)) == set()
    assert chosen(*small[:1], file("large", TARGET, deleted=20)) == {"large"}
    assert chosen(file("full", TARGET, deleted=100)) == {"full"}
    assert chosen(file("uncounted", TARGET, rows=None, deleted=1)) == {"uncounted"}
    assert chosen(file("uncounted", TARGET, rows=None)) == set()


def test_a_larger_file_waits_for_smaller_ones_of_its_size_together() -> None:
    small = [file(name, 10) for name in "abc"]
    assert chosen(*small, file("large", 61)) == set("abc")
    assert chosen(*small, file("large", 60)) == {*"abc", "large"}
    assert chosen(*small, file("large", 60), file("next", 181)) == {*"abc", "large"}
    assert chosen(*small, file("large", 60), file("next", 180)) == {*"abc", "large", "next"}


def test_worn_files_do_not_count_as_small_ones() -> None:
    assert chosen(file("a", 10), file("b", 10), file("worn", 10, deleted=50)) == {"worn"}


@given(files=st.lists(st.tuples(st.integers(1, 1500), st.integers(0, 100))), min_files=st.integers(1, 6))
def test_every_worn_file_is_taken_and_nothing_twice(files: list[tuple[int, int]], min_files: int) -> None:
    listed = [file(f"f{number}", size, deleted=deleted) for number, (size, deleted) in enumerate(files)]
    taken = [each.path for each in choose(listed, min_files=min_files, target_size=TARGET)]
    assert len(taken) == len(set(taken))
    worn = {each.path for each in listed if each.deleted >= 20}
    assert worn <= set(taken)
    others = [each for each in listed if each.path in set(taken) - worn]
    assert all(each.size < TARGET for each in others)
    assert len(others) == 0 or len(others) >= max(2, min_files)


@pytest.mark.parametrize("min_files", [4, 10])
def test_a_row_is_written_a_number_of_times_that_grows_with_the_logarithm_of_the_table(min_files: int) -> None:
    """Ticks of one size, a compaction whenever there is something to do; nothing is taken away."""
    written = {}
    for ticks in (250, 1000, 4000):
        files, cost, count = [], 0, 0
        for tick in range(ticks):
            files.append(file(f"tick-{tick}", 10))
            taken = choose(files, min_files=min_files, target_size=10**9)
            if taken:
                size = sum(each.size for each in taken)
                left = [each for each in files if each not in taken]
                files, cost, count = [*left, file(f"made-{tick}", size)], cost + size, count + 1
        written[ticks] = cost / (10 * ticks)
        assert len(files) <= min_files + 12
    assert written[4000] - written[1000] <= written[1000] - written[250] + 1
    assert written[4000] < 12


def test_rows_that_left_an_input_leave_the_output_that_has_them() -> None:
    mapping = {
        "a": np.concatenate([locations_of(7, np.array([0, 1])), np.array([GONE]), locations_of(8, np.array([0]))]),
        "b": locations_of(8, np.array([1, 2])),
    }
    done = Rewritten(
        {"a": BitMap([2]), "b": BitMap()},
        [],
        {"one": 7, "other": 8, "third": 9},
        mapping,
        mirror=None,  # type: ignore[arg-type]
    )
    assert done.carried({"a": BitMap([1, 3]), "b": BitMap([1])}) == {"one": BitMap([1]), "other": BitMap([0, 2])}
    assert done.carried({"a": BitMap([0])}) == {"one": BitMap([0])}
    assert done.carried({}) == {}
