"""Indexes that are made beside the ticks: who commits takes them, and nobody waits for another table's."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.vectors.live_files import live_files
from airflow_provider_mzshare.storage.collections.vectors.state import IndexLate, KeyState
from airflow_provider_mzshare.storage.writing import key_states
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.key_states import KeyStates, LentStates
from tests.integration.delta.test_keyed_commits import NAME, Scene, values
from tests.support.rewriting_apart import rewrite_apart
from tests.support.waiting import wait_until

MADE = "the index of version"


class Two:
    """A backfill's writer, and an app that is to take the table over."""

    def __init__(self, root: Path) -> None:
        self.scene, self.number = Scene(root), 0
        self.indexing = Indexing(str(root), KeyStates(root / "keys"))

    def commit(self, *keys: str) -> None:
        self.number += 1
        events = self.scene.events(self.number, self.scene.records(*((key, f"{self.number}") for key in keys)))
        self.scene.tick(self.number, events)

    def compact(self) -> None:
        done = self.scene.states.rewrite(self.scene.opened(), min_files=2)
        assert done is not None
        self.scene.states.put_rewritten(self.scene.collection, done)

    def bring(self) -> None:
        """Until the app's index is at the newest version."""
        version = self.scene.opened().delta_version
        self.indexing.want([NAME])
        wait_until(lambda: self.state.version == version, 10, f"the index of version {version}")

    @property
    def state(self) -> KeyState:
        with self.indexing.states._guard:
            kept = self.indexing.states._states.get(NAME)
        return kept.state if kept else KeyState(Path("nowhere"), ())

    def take_over(self) -> Scene:
        """The app is the writer from now on."""
        self.scene.states.close()
        self.scene.states, self.scene.collection = self.indexing.states, self.scene.opened()
        return self.scene


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    two = Two(tmp_path)
    yield two
    two.scene.states.close()
    two.indexing.close()
    assert not (tmp_path / "keys").exists()


def made(caplog: pytest.LogCaptureFixture) -> list[str]:
    """By which threads indexes were made."""
    return [record.threadName or "" for record in caplog.records if MADE in record.getMessage()]


def test_it_follows_ticks_and_compactions_of_the_backfill_and_is_taken_over_as_it_is(
    two: Two, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        two.commit("a", f"k{number}")
    caplog.set_level(logging.INFO)
    two.bring()
    for number in range(3):
        two.commit("b", f"k{number}")
        two.bring()
    two.compact()
    two.bring()
    two.commit("c", "a")
    assert two.indexing.is_ready(NAME)
    scene = two.take_over()
    two.commit("a", "k3", "new")
    assert made(caplog) == ["mzshare-index_0"], "it was made once, and not by the one that commits"
    last = str(two.number)
    wanted = {"a": last, "b": "7", "c": "8", "k0": "5", "k1": "6", "k2": "7", "k3": last, "new": last}
    assert {key: json.loads(value) for key, value in values(scene).items()} == {k: int(v) for k, v in wanted.items()}


def test_it_is_not_moved_beside_the_ticks_any_more_once_it_is_taken(two: Two) -> None:
    two.commit("a")
    two.bring()
    two.take_over()
    two.commit("a", "b")
    version = two.state.version
    Collection.open(two.scene.root, NAME).table.optimize.compact()
    two.indexing.want([NAME])
    two.indexing.want([])
    two.indexing._thread.submit(int).result(10)
    assert two.state.version == version


def test_a_table_that_has_left_and_comes_back_needs_a_new_one(two: Two) -> None:
    two.commit("a")
    two.bring()
    two.take_over()
    two.commit("b")
    two.indexing.states.keep([NAME])
    assert not two.indexing.is_ready(NAME), "it is a member's"
    two.indexing.states.keep([])
    assert not two.indexing.is_ready(NAME)
    two.bring()
    assert two.indexing.is_ready(NAME)
    assert two.state.keys_known == 2


def test_what_is_not_there_or_has_no_index_is_ready_at_once(tmp_path: Path) -> None:
    merged = Scene(tmp_path, vectors=False)
    indexing = Indexing(merged.root, KeyStates(tmp_path / "keys"))
    indexing.want([NAME, "u2-not-made-yet"])  # type: ignore[list-item]
    wait_until(lambda: indexing.is_ready(NAME) and indexing.is_ready("u2-not-made-yet"), 10, "both")  # type: ignore[arg-type]
    assert not (tmp_path / "keys").exists()
    indexing.close()


class Slow:
    """Holds the making of an index where its files are read, until it is let go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        real = KeyState._unless_interrupted

        def held(state: KeyState, batches: Iterator[object]) -> Iterator[object]:
            self.reached.set()
            assert self.go_on.wait(20)
            return real(state, batches)  # type: ignore[arg-type]

        patch.setattr(KeyState, "_unless_interrupted", held)


def test_a_commit_waits_for_its_own_index_and_takes_what_was_made(
    two: Two, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    two.commit("a")
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as patch:
        slow = Slow(patch)
        two.indexing.want([NAME])
        assert slow.reached.wait(10)
        assert not two.indexing.is_ready(NAME)
        two.take_over()
        commit = threading.Thread(target=lambda: two.commit("a", "b"))
        commit.start()
        commit.join(0.3)
        assert commit.is_alive()
        slow.go_on.set()
        commit.join(10)
    assert made(caplog) == ["mzshare-index_0"]
    assert "the commit waited" in caplog.text
    assert values(two.scene) == {"a": "2", "b": "2"}


def test_nobody_waits_for_the_index_of_another_table(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.commit("a")
    name, member = CollectionId("u2-keyed"), two.scene.member
    create_collection(two.scene.root, name, member.schema, keys=member.keys)
    other = Collection.open(two.scene.root, name)
    with monkeypatch.context() as patch:
        slow = Slow(patch)
        two.indexing.want([NAME, name])
        assert slow.reached.wait(10)
        rows = two.indexing.states.rows_of(other)
        found = rows.before(other, pa.table({"key": ["a"]}), member.schema)
        assert not two.indexing.is_ready(NAME), "it is still made"
        slow.go_on.set()
    assert found.num_rows == 0
    wait_until(lambda: two.indexing.is_ready(NAME), 10, "it to be ready")


def test_it_is_not_ready_while_it_follows_an_entry_that_takes_long(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.commit("a")
    two.bring()
    wait_until(lambda: two.indexing.is_ready(NAME), 10, "it to be ready")
    two.commit("b")
    with monkeypatch.context() as patch:
        slow = Slow(patch)
        two.indexing.want([NAME])
        assert slow.reached.wait(10)
        wait_until(lambda: not two.indexing.is_ready(NAME), 10, "it not to be ready")
        slow.go_on.set()
        wait_until(lambda: two.indexing.is_ready(NAME), 10, "it to be ready again")


def test_what_leaves_while_it_is_made_is_let_go_without_a_wait_and_leaves_nothing(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.commit("a")
    with monkeypatch.context() as patch:
        slow = Slow(patch)
        two.indexing.want([NAME])
        assert slow.reached.wait(10)
        two.indexing.forget(NAME)
        assert (tmp_path / "keys" / NAME).exists()
        slow.go_on.set()
        wait_until(lambda: not (tmp_path / "keys" / NAME).exists(), 10, "its scratch to go")
    assert not two.indexing.is_ready(NAME)
    two.bring()
    assert two.state.keys_known == 1, "it may come again"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is short for a real app would be short for these tests, whatever they did."""
    monkeypatch.setattr(key_states, "FEW_ROWS", 0)


@pytest.mark.usefixtures("few")
def test_a_tick_does_not_wait_for_an_index_and_gives_back_what_it_cannot_use(two: Two, tmp_path: Path) -> None:
    states = two.indexing.states
    assert states.take(two.scene.opened()), "there is nothing to read"
    states.give_back(two.scene.opened(), IndexLate("it is to be read"))
    for key in "ab":
        two.commit(key)
    assert not states.take(two.scene.opened())
    two.bring()
    assert states.take(two.scene.opened())
    rewrite_apart(two.scene.root, NAME, tmp_path / "apart")
    opened, version = two.scene.opened(), two.state.version
    with pytest.raises(IndexLate, match="2 rows would have to be read") as late:
        states.rows_of(opened, 0).before(opened, pa.table({"key": ["a"]}), two.scene.member.schema)
    assert two.state.version == version, "what is known is kept"
    states.give_back(opened, late.value)
    two.bring()
    assert two.indexing.is_ready(NAME)


@pytest.mark.usefixtures("few")
def test_a_tick_does_not_wait_while_an_index_is_made(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.commit("a")
    with monkeypatch.context() as patch:
        slow = Slow(patch)
        two.indexing.want([NAME])
        assert slow.reached.wait(10)
        assert not two.indexing.states.take(two.scene.opened())
        slow.go_on.set()
    wait_until(lambda: two.indexing.is_ready(NAME), 10, "it to be ready")
    assert two.indexing.states.take(two.scene.opened())


@pytest.mark.usefixtures("few")
def test_a_table_whose_index_nobody_can_make_is_taken_so_that_its_tick_says_why(two: Two) -> None:
    two.commit("a")
    two.indexing.states.needless.add(NAME)
    assert two.indexing.states.take(two.scene.opened())


@pytest.mark.usefixtures("few")
def test_an_index_is_lent_for_a_commit_and_nobody_else_moves_it_meanwhile(two: Two) -> None:
    two.commit("a")
    two.bring()
    lent = LentStates(two.indexing.states)
    opened = two.scene.opened()
    with lent.commits_to(opened):
        rows = lent.rows_of(opened)
        assert rows.before(opened, pa.table({"key": ["a"]}), two.scene.member.schema).num_rows == 1
        assert two.indexing.is_ready(NAME), "a tick that takes it waits for no more than this commit"
        two.commit("b")
        two.indexing.want([NAME])
        taken: list[bool] = []
        taker = threading.Thread(target=lambda: taken.append(two.indexing.states.take(two.scene.opened())))
        taker.start()
        taker.join(10)
        assert taken == [False]
        assert two.state.version == opened.delta_version
    wait_until(lambda: two.state.version == opened.delta_version + 1, 10, "the next entry")
    two.indexing.states.bring(opened)
    assert two.state.version == opened.delta_version + 1, "it never goes back"
    lent.keep([])
    lent.close()
    assert two.indexing.is_ready(NAME)


def test_what_is_given_up_while_it_is_lent_leaves_nothing(two: Two, tmp_path: Path) -> None:
    two.commit("a")
    two.bring()
    lent = LentStates(two.indexing.states)
    with lent.commits_to(two.scene.opened()):
        two.indexing.forget(NAME)
        assert (tmp_path / "keys" / NAME).exists()
    assert not (tmp_path / "keys" / NAME).exists()


def test_a_full_disk_keeps_it_from_being_ready_until_there_is_room(
    two: Two, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    two.commit("a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(KeyState, "_rows", full)
        two.indexing.want([NAME])
        wait_until(lambda: "cannot be made" in caplog.text, 10, "the failure")
    two.indexing._thread.submit(int).result(10)
    assert not two.indexing.is_ready(NAME)
    two.bring()
    wait_until(lambda: two.indexing.is_ready(NAME), 10, "it to be ready")


def test_a_collection_that_is_damaged_is_left_to_its_tick_which_says_so(two: Two) -> None:
    two.commit("a")
    for path in live_files(two.scene.collection.filesystem, 1).files:
        Path(two.scene.collection.uri, path).unlink()
    two.indexing.want([NAME])
    wait_until(lambda: two.indexing.is_ready(NAME), 10, "nobody to wait for it")
