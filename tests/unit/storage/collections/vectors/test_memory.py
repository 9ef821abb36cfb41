"""Where the arrays of indexes go: into the memory that all of them share, or else into files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airflow_provider_mzshare.storage.collections.vectors.index import ENTRY_BYTES, IndexBuilder, KeyIndex
from airflow_provider_mzshare.storage.collections.vectors.memory import IndexMemory, fits

ROWS = 20_000


@pytest.mark.parametrize(
    ("limit", "taken", "size", "wanted"),
    [
        (100, {}, 100, True),
        (100, {}, 101, False),
        (100, {"b": 60}, 40, True),
        (100, {"b": 60}, 41, False),
        (100, {"a": 50, "b": 60}, 40, True),
        (100, {"a": 50, "b": 60}, 50, True),
        (100, {"a": 50, "b": 60}, 51, False),
        (0, {}, 0, True),
        (0, {}, 1, False),
    ],
)
def test_an_index_may_have_what_the_others_leave_and_always_give_back(
    limit: int, taken: dict[str, int], size: int, wanted: bool
) -> None:
    assert fits(limit, taken, "a", size) is wanted


def test_a_refusal_changes_nothing_and_what_is_given_back_is_free() -> None:
    memory = IndexMemory(100)
    one, other = memory.share(), memory.share()
    assert one.takes(70)
    assert not other.takes(40)
    assert memory.taken == 70
    assert one.takes(10)
    assert other.takes(90)
    assert memory.taken == 100


def hashes(begin: int, count: int = ROWS) -> np.ndarray:
    return np.random.default_rng(begin).permutation(np.arange(begin, begin + count, dtype=np.uint64) << np.uint64(40))


def add(index: KeyIndex | IndexBuilder, begin: int) -> None:
    index.add(hashes(begin), np.arange(begin, begin + ROWS, dtype=np.uint64))


def check(index: KeyIndex, rows: int) -> None:
    for begin in range(0, rows, ROWS):
        asked = hashes(begin)
        places, locations = index.find(asked)
        found = dict(zip(asked[places].tolist(), locations.tolist(), strict=True))
        assert found == dict(zip(asked.tolist(), range(begin, begin + ROWS), strict=True))


def test_a_table_that_outgrows_the_memory_goes_on_in_files_when_its_runs_are_merged(tmp_path: Path) -> None:
    """A merge needs the memory of the new run beside that of the old ones."""
    memory = IndexMemory(4 * ROWS * ENTRY_BYTES)
    index = KeyIndex(tmp_path, memory.share())
    add(index, 0)
    assert index.disk_bytes == 0
    for number in range(1, 6):
        add(index, number * ROWS)
        assert memory.taken == index.memory_bytes <= 4 * ROWS * ENTRY_BYTES
    assert index.disk_bytes == 6 * ROWS * ENTRY_BYTES
    check(index, 6 * ROWS)
    index.close()
    assert memory.taken == 0


def test_what_another_table_gives_back_is_used_at_the_next_merge(tmp_path: Path) -> None:
    memory = IndexMemory(10 * ROWS * ENTRY_BYTES)
    other = memory.share()
    assert other.takes(10 * ROWS * ENTRY_BYTES)
    index = KeyIndex(tmp_path, memory.share())
    add(index, 0)
    assert index.memory_bytes == 0
    other.takes(0)
    add(index, ROWS)
    assert index.disk_bytes == 0
    check(index, 2 * ROWS)


@pytest.mark.parametrize("fit", [True, False])
def test_an_index_is_made_in_memory_if_its_parts_fit_too(tmp_path: Path, fit: bool) -> None:
    memory = IndexMemory(2 * 3 * ROWS * ENTRY_BYTES - (not fit))
    builder = IndexBuilder(tmp_path, memory.share(), rows=3 * ROWS)
    assert memory.taken == (2 * 3 * ROWS * ENTRY_BYTES if fit else 0)
    for number in range(3):
        add(builder, number * ROWS)
    index = builder.finish()
    assert memory.taken == index.memory_bytes == 3 * ROWS * ENTRY_BYTES
    check(index, 3 * ROWS)


def test_without_any_memory_all_of_it_is_in_files(tmp_path: Path) -> None:
    builder = IndexBuilder(tmp_path, IndexMemory(0).share(), rows=ROWS)
    add(builder, 0)
    index = builder.finish()
    add(index, ROWS)
    assert index.memory_bytes == 0
    check(index, 2 * ROWS)
    assert not list(tmp_path.iterdir()), "the files have no names"
