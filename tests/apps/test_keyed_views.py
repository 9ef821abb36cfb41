"""Tables whose rows change, under views and names: at every tick, while both change hands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.lifecycle.read_table import read_frame
from airflow_provider_mzshare.control.statements.blue_green import plan_rollback, plan_swap, swap_once
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.core.ids import ItemId
from tests.support.keyed_cases import SHAPES, drawn
from tests.support.keyed_oracle import Shape, State
from tests.support.keyed_scene import KeyedScene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPOSITE = SHAPES["composite"]
"""Columns n, name, a and b; the key is (a, b)."""


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    made = KeyedScene(tmp_path, drawn(5, COMPOSITE, ticks=8, most=20), monkeypatch.setattr)
    yield made
    made.close()


def read(spark: SparkSession, scene: KeyedScene, name: str, tick: int | None = None) -> list[tuple[Any, ...]]:
    found = read_frame(spark, scene.catalog, scene.root, name, tick=tick).collect()
    return sorted((tuple(row) for row in found), key=repr)


def seen(state: State, *names: str, shape: Shape = COMPOSITE) -> list[tuple[Any, ...]]:
    """What the oracle's rows show of these columns."""
    at = [[name for name, _ in shape.visible].index(name) for name in names]
    return sorted((tuple(row.values[number] for number in at) for row in state.rows.values()), key=repr)


def test_a_view_shows_the_rows_of_any_tick_and_follows_its_table_through_a_swap_and_back(
    spark: SparkSession, scene: KeyedScene
) -> None:
    case, states = scene.case, scene.case.states()
    old = scene.add_table("people")
    scene.run(case.ticks[:4])
    execute_script(scene.catalog, "CREATE VIEW names AS SELECT b, name FROM people", FixedConnections({}))
    plan = plan_swap(scene.catalog, "people")
    new: ItemId = scene.add_table("people__next")
    scene.backfill(new)
    scene.run(case.ticks[4:])
    for tick in (3, 6):
        assert read(spark, scene, "names", tick) == seen(states[tick], "b", "name")
    swap_once(scene.catalog, plan.table, plan.other, new_id=new, keep_as=plan.keep_as)
    assert scene.table(new).name[1] == "people"
    for name in ("people", plan.keep_as):
        assert read(spark, scene, name) == seen(states[8], "n", "name", "a", "b")
    assert read(spark, scene, "names") == seen(states[8], "b", "name")
    back = plan_rollback(scene.catalog, "people")
    swap_once(scene.catalog, back.table, back.other, new_id=old, keep_as=back.keep_as)
    assert read(spark, scene, "names", 2) == seen(states[2], "b", "name")
    for tick in case.ticks:
        scene.check_state(states[tick.number], "people", tick=tick.number)
