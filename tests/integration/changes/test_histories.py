"""Change streams of tables that have been through a lot: whatever was done, changes add up to the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog.log.arrivals import resume_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.storage.collections import changes as storage
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.log import read_part
from tests.support.change_streams import Streams
from tests.support.keyed_cases import PLAIN, SHAPES, Step, assemble, drawn
from tests.support.keyed_oracle import Shape
from tests.support.keyed_scene import KeyedScene
from tests.support.random_histories import NAMES, RandomHistory


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=name, marks=() if name in ("text key", "bytes key") else pytest.mark.full(seconds=5))
        for name, shape in SHAPES.items()
    ],
)
def test_changes_add_up_for_keys_of_every_shape_and_both_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: Shape
) -> None:
    case = drawn(7, shape, ticks=8, most=20)
    scene = KeyedScene(tmp_path, case, monkeypatch.setattr)
    for vectors in (True, False):
        scene.add_table("ttrue" if vectors else "tfalse", shape.spec.model_copy(update={"deletion_vectors": vectors}))
    scene.run(case.ticks[:5])
    late = scene.add_table("late")
    scene.backfill(late)
    scene.run(case.ticks[5:])
    for name in ("ttrue", "tfalse", "late"):
        assert Streams(scene.catalog, scene.root, name).check() > 5
    scene.close()


@pytest.mark.parametrize(
    ("seed", "columns_change"),
    [(4, False), *(pytest.param(seed, seed % 2 == 0, marks=pytest.mark.full(seconds=25)) for seed in range(10, 24))],
)
def test_changes_add_up_whatever_has_happened(tmp_path: Path, seed: int, columns_change: bool) -> None:
    """Stalls, healing in groups, generations, kills, compactions, maintenance; both writers, and rows that only add."""
    history = RandomHistory(tmp_path, seed, columns_change=columns_change)
    history.run(30)
    for name in NAMES:
        Streams(history.catalog, history.root, name, probes=8, seed=seed).check()
    assert sum(history.done.values()) > 5, "hardly anything has happened"
    history.close()


# ── commits without a change file ─────────────────────────────────────────────────────────────────────────────────────

ONE, TWO, BAD = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}', b"{"
CHANGED = [
    [Step(0, b"a", ONE), Step(0, b"b", ONE)],
    [Step(0, b"c", ONE)],
    [Step(0, b"a", TWO), Step(0, b"a", BAD)],
    [Step(0, b"c", None)],
    [Step(0, b"b", TWO), Step(0, b"d", ONE)],
    [Step(0, b"a", None), Step(0, b"d", TWO)],
    [Step(0, b"b", ONE)],
    [Step(0, b"b", None), Step(0, b"a", ONE)],
    [Step(0, b"d", None)],
]


def write_no_change_files(scene: KeyedScene, table: ItemId) -> None:
    """From now on, as in tables that were made before there were any."""
    collection = Collection.open(scene.root, scene.point(table).data)
    collection.table.alter.set_table_properties({"delta.enableChangeDataFeed": "false"})


def kinds(scene: KeyedScene, table: ItemId) -> set[tuple[str, ...]]:
    """What entries of the table have: files that come, that go, and that tell of changes."""
    entries = read_part(Collection.open(scene.root, scene.point(table).data).filesystem)
    parts = [{"add": e.added(), "remove": e.removed(), "cdc": e.changes()} for e in entries]
    return {tuple(kind for kind, paths in having.items() if any(paths)) for having in parts}


def test_changes_add_up_where_merges_have_no_change_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a commit did is the rows of the files that came less those of the files that went."""
    case = assemble(PLAIN, CHANGED)
    scene = KeyedScene(tmp_path, case, monkeypatch.setattr)
    spec = PLAIN.spec.model_copy(update={"deletion_vectors": False})
    never, later = (scene.add_table(name, spec) for name in ("never", "later"))
    healed = scene.add_table("healed", spec.model_copy(update={"on_decode_error": "stop"}))
    scene.run(case.ticks[:1])
    for table in (never, healed):
        write_no_change_files(scene, table)
    scene.run(case.ticks[1:6])
    write_no_change_files(scene, later)
    with scene.catalog.write() as session:
        items.set_table_spec(session, healed, spec)
        resume_table(session, healed)
    ((first, last),) = scene.backfill(healed)
    assert last > first, "several ticks in one commit"
    scene.run(case.ticks[6:])
    assert kinds(scene, never) >= {("add", "remove"), ("remove",)}
    assert kinds(scene, later) >= {("add", "remove"), ("add", "remove", "cdc")}
    assert ("add", "remove", "cdc") not in kinds(scene, healed)
    for name in ("never", "later", "healed"):
        assert Streams(scene.catalog, scene.root, name, probes=10).check() > 5
    whole = storage._files
    monkeypatch.setattr(storage, "_files", lambda entry, kind: whole(entry, kind) if kind == "add" else [])
    with pytest.raises(AssertionError, match="changes from"):
        Streams(scene.catalog, scene.root, "never").check()
    scene.close()
