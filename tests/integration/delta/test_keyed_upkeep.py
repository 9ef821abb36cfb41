"""Compaction where rows change, through the writer of an app: written beside the ticks, put by who commits them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.vectors import puts
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewriting, Rewritten
from tests.support.keyed_cases import PLAIN, Step, assemble
from tests.support.keyed_scene import KeyedScene
from tests.support.waiting import wait_until


def value(number: int) -> bytes:
    return json.dumps({"n": number, "name": "x"}).encode()


def new(number: int) -> list[Step]:
    """Two keys that no tick before has had."""
    return [Step(number % 2, f"{number} {name}".encode(), value(number)) for name in "ab"]


AFTER = [Step(0, b"1 a", value(9)), Step(1, b"2 b", None)]
"""Keys of files that were written anew."""
BESIDE = {True: AFTER, False: new(5)}
"""What a tick does while they are written. A merge of AFTER would write these files anew, too."""


class Held:
    """The writing of files that replace others is held at its end, and it is noted who writes and who puts."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.written_by: list[str] = []
        self.put_by: list[str] = []
        run, put = Rewriting.run, puts.put_entry

        def held(rewriting: Rewriting, *args: object) -> Rewritten:
            found = run(rewriting, *args)  # type: ignore[arg-type]
            self.written_by.append(threading.current_thread().name)
            self.begun.set()
            assert self.may_end.wait(60)
            return found

        def noted(uri: str, version: int, content: bytes) -> puts.Answer:
            if b"mz_compaction" in content:
                self.put_by.append(threading.current_thread().name)
            return put(uri, version, content)

        patch.setattr(Rewriting, "run", held)
        patch.setattr(puts, "put_entry", noted)


@pytest.fixture(params=[True, False], ids=["vectors", "merge"])
def vectors(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def scene(tmp_path: Path, vectors: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    ticks = [*(new(number) for number in range(1, 5)), BESIDE[vectors], AFTER, new(7)]
    made = KeyedScene(tmp_path, assemble(PLAIN, ticks), monkeypatch.setattr)
    yield made
    made.close()


def test_it_is_written_beside_the_ticks_and_put_by_the_thread_that_commits_them(
    scene: KeyedScene, vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, states, commits = scene.case, scene.case.states(), scene.app.commits
    table = scene.add_table("t", PLAIN.spec.model_copy(update={"deletion_vectors": vectors}))
    scene.run(case.ticks[:4])
    name = CollectionId(scene.point(table).data)
    held = Held(monkeypatch)
    commits.compact_all()
    commits.tidy()
    assert held.begun.wait(60)
    scene.run(case.ticks[4:5])
    commits.tidy()
    assert Collection.open(scene.root, name).delta_version == 5, "it is not whole yet, and the tick has not waited"
    held.may_end.set()
    wait_until(lambda: not commits._upkeep._rewritten.empty(), 60, "the files to be whole")
    assert held.put_by == []
    commits.tidy()
    assert (len(held.written_by), held.put_by) == (1, [threading.current_thread().name])
    assert held.written_by[0].startswith("mzshare-upkeep")
    collection = Collection.open(scene.root, name)
    entry = deltalog.read_entry(collection.filesystem, 6)
    assert entry is not None
    assert (collection.delta_version, len(list(entry.removed()))) == (6, 4)
    scene.run(case.ticks[5:])
    for tick in case.ticks:
        scene.check_state(states[tick.number], tick=tick.number)
    scene.prove(table, states[7])
    assert scene.check(table).is_whole


def test_one_whose_files_a_merge_has_written_anew_is_dropped_and_due_again(
    scene: KeyedScene, vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With vectors it is put all the same: what was taken away meanwhile is carried over."""
    case, states, commits = scene.case, scene.case.states(), scene.app.commits
    table = scene.add_table("t", PLAIN.spec.model_copy(update={"deletion_vectors": vectors}))
    scene.run(case.ticks[:5])
    held = Held(monkeypatch)
    commits.compact_all()
    commits.tidy()
    assert held.begun.wait(60)
    scene.run(case.ticks[5:6])
    held.may_end.set()
    wait_until(lambda: not commits._upkeep._rewritten.empty(), 60, "the files to be whole")
    before = commits._upkeep._commits.total()
    commits.tidy()
    assert bool(held.put_by) == vectors
    assert (commits._upkeep._commits.total() > before) == (not vectors)
    scene.run(case.ticks[6:])
    for tick in case.ticks:
        scene.check_state(states[tick.number], tick=tick.number)
    scene.prove(table, states[7])
