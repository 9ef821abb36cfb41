"""Change streams of tables that have been through a lot: whatever was done, changes add up to the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.change_streams import Streams
from tests.support.keyed_cases import SHAPES, drawn
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
