"""A damaged vector is found and named, by whoever meets it, and no reader gives rows that it has taken away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from airflow_provider_mzshare.storage.collections.damage import DamagedCollection
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.keyed_history import History
from tests.support.keyed_readers import check_refused


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path, 1)
    made.commits(14)
    yield made
    made.close()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 0xFF
    path.write_bytes(bytes(content))


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "deleted": (Path.unlink, "is missing"),
    "cut off": (cut, "is not whole"),
    "other bytes": (flip, "is not whole"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_damaged_vector_is_named_and_no_reader_gives_rows_without_it(history: History, what: str) -> None:
    spoil, problem = SPOILT[what]
    assert history.damages() == []
    spoil(vector := history.live_vector())
    found = history.damages()
    assert found
    assert all(each.startswith(f"{vector.name} {problem}: it has a deletion vector of part-") for each in found)
    check_refused(history.path, None, vector.name if what == "deleted" else "")


@pytest.mark.parametrize("what", SPOILT)
def test_who_has_to_read_a_damaged_vector_for_a_commit_is_told_its_name(history: History, what: str) -> None:
    SPOILT[what][0](vector := history.live_vector())
    history.scene.states.close()
    scene = history.scene
    with pytest.raises(DamagedCollection) as raised:
        scene.events(99, scene.records(("k1", '{"n":1}'))).is_empty(scene.opened())
    assert vector.name in raised.value.line
    assert "\x1b" not in raised.value.line


def test_a_compaction_that_meets_a_damage_is_dropped_and_ends_nothing(history: History) -> None:
    history.write_compaction()
    assert history.written is not None
    states = KeyStates(Path(history.scene.root, "other"))
    states.rows_of(history.scene.opened())
    history.live_vector().unlink()
    states.put_rewritten(history.scene.opened(), history.written)
    assert DeltaTable(str(history.path)).version() == history.newest
    states.close()


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merge"])
def test_a_compaction_whose_files_somebody_has_removed_is_never_put(tmp_path: Path, vectors: bool) -> None:
    """No entry has named them yet, so a clean-up of another tool may take them."""
    history = History(tmp_path, 1, vectors=vectors)
    try:
        history.commits(6)
        history.write_compaction()
        assert history.written is not None
        for file in history.written.outputs:
            (history.path / file.path).unlink()
        assert not history.scene.states.put_rewritten(history.scene.collection, history.written)
        assert history.damages() == []
        history.commit()
        history.compact()
        assert history.damages() == []
    finally:
        history.close()
