"""Faults that a change stream could have, each put in where its rule is: the law of streams tells of every one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table, resume_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries import changes as queries
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.changes import Commit
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections import changes as storage
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.log import Entry, TickCommit, read_entry
from tests.support.change_streams import Streams
from tests.support.driven import DrivenBackfill
from tests.support.keyed_cases import PLAIN, Step, assemble
from tests.support.keyed_oracle import Tick
from tests.support.keyed_scene import KeyedScene

ONE, TWO, BAD = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}', b"{"
CASE = assemble(
    PLAIN,
    [
        [Step(0, b"a", ONE), Step(0, b"b", ONE)],
        [Step(0, b"x", BAD), Step(0, b"a", TWO)],
        [Step(0, b"c", ONE)],
        [Step(0, b"c", TWO)],
        [Step(0, b"a", None), Step(0, b"b", TWO)],
    ],
)
STOPPING = PLAIN.spec.model_copy(update={"on_decode_error": "stop"})


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    made = KeyedScene(tmp_path, CASE, monkeypatch.setattr)
    yield made
    made.close()


def told(scene: KeyedScene) -> str:
    """What the law tells of, at all times; nothing, if it holds."""
    streams = Streams(scene.catalog, scene.root, "t")
    try:
        assert streams.check() > 5
    except (AssertionError, NotReadable) as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize("spec", [PLAIN.spec, STOPPING], ids=["live", "stalled"])
def test_the_end_of_a_generation_as_it_is_noted(
    scene: KeyedScene, monkeypatch: pytest.MonkeyPatch, spec: TableSpec
) -> None:
    """It is a time after its last tick; but the generation answers until the first tick that it has not got."""
    table = scene.add_table("t", spec)
    scene.run(CASE.ticks[:3])
    with scene.catalog.write() as session:
        items.set_table_spec(session, table, PLAIN.spec)
        resnapshot_table(session, table)
    scene.backfill(table)
    scene.run(CASE.ticks[3:])
    assert not told(scene)
    monkeypatch.setattr(queries, "_answers_until", lambda session, table, swap: swap.upper)
    assert "it stopped at" in told(scene)


@pytest.mark.parametrize("vectors", [True, False])
def test_groups_that_reach_back_over_others_one_by_one(
    scene: KeyedScene, monkeypatch: pytest.MonkeyPatch, vectors: bool
) -> None:
    table = scene.add_table("t", STOPPING.model_copy(update={"deletion_vectors": vectors}))
    scene.run(CASE.ticks[:4])
    with scene.catalog.write() as session:
        items.set_table_spec(session, table, PLAIN.spec)
        resume_table(session, table)
    end = scene.app.store.load().upper
    backfill = DrivenBackfill(scene.catalog, scene.root, table, scene.source_id, scene.records, most=1, end=end)
    assert backfill.run() == [(2, 2), (3, 3), (4, 4)]
    scene.run(CASE.ticks[4:])
    assert not told(scene)

    def one_by_one(commits: Iterable[Commit]) -> Iterator[tuple[Commit, ...]]:
        return ((commit,) for commit in commits)

    monkeypatch.setattr(queries, "together", one_by_one)
    assert "the table was never like that" in told(scene)


# ── compactions ───────────────────────────────────────────────────────────────────────────────────────────────────────

APPENDED = TableSpec(reference="topic", format="json", columns=PLAIN.spec.columns)
SPECS = {"keyed": PLAIN.spec, "merged": PLAIN.spec.model_copy(update={"deletion_vectors": False}), "plain": APPENDED}


def compacted_before_it_is_noted(scene: KeyedScene, name: str) -> None:
    """A tick is in the collection and a compaction after it, when the app dies; the next one notes the tick."""
    scene.add_table("t", SPECS[name])
    scene.run(CASE.ticks[:3])
    tick = scene.app.mint(_upper(CASE.ticks[3]))
    scene.app.execute(tick)
    data = scene.point(ItemId("u2")).data
    collection = Collection.open(scene.root, data)
    if collection.keys:
        written = scene.app.states.rewrite(collection, min_files=2)
        assert written is not None
        assert scene.app.states.put_rewritten(Collection.open(scene.root, data), written)
    else:
        assert compact(collection, min_files=2).done
    scene.restart()
    assert scene.app.finish_pending() == [tick.number]
    scene.run(CASE.ticks[4:])


def _upper(tick: Tick) -> Position:
    return Position({str(lane): end for lane, (_, end) in tick.ranges.items()})


Find = Callable[[Collection, int], TickCommit | None]


def newest(find: Find) -> Find:
    def found(collection: Collection, mz_timestamp: int) -> TickCommit | None:
        commit = find(collection, mz_timestamp)
        return replace(commit, version=collection.delta_version) if commit else None

    return found


def whatever_stands_there(place: storage.Place, commit: Commit) -> Entry:
    entry = read_entry(place.filesystem, commit.version)
    assert entry is not None
    return entry


@pytest.mark.parametrize("name", SPECS)
def test_an_entry_of_a_compaction_for_the_one_of_the_tick_before_it(
    scene: KeyedScene, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Collection, "find_tick", newest(Collection.find_tick))
        compacted_before_it_is_noted(scene, name)
    assert "no longer has the commit" in told(scene)
    monkeypatch.setattr(storage, "_entry", whatever_stands_there)
    assert "changes from" in told(scene), "what the tick has done is missing"


@pytest.mark.parametrize("name", SPECS)
def test_a_tick_that_is_noted_after_a_compaction_has_its_own_changes(scene: KeyedScene, name: str) -> None:
    compacted_before_it_is_noted(scene, name)
    assert not told(scene)
