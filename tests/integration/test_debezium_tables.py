"""What a real Debezium said, and generated streams, in tables of both writers: the apps' own log, pass and commits.

No broker, no Spark. Tables that are there from the beginning, and tables that come late and are cut over in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.debezium.recorded import Stream, streams
from tests.support.debezium_cases import SHAPES, drawn
from tests.support.debezium_oracle import DebeziumCase, DebeziumShape
from tests.support.keyed_scene import KeyedScene

Open = Callable[[DebeziumCase], KeyedScene]
FULL = pytest.mark.full(seconds=10)
FIRST = ("plain odd", "wrapped lines")


@pytest.fixture
def open_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    made: list[KeyedScene] = []

    def make(case: DebeziumCase) -> KeyedScene:
        made.append(KeyedScene(tmp_path, case, monkeypatch.setattr))
        return made[-1]

    yield make
    for scene in made:
        scene.close()


def run(open_scene: Open, case: DebeziumCase) -> None:
    scene, states = open_scene(case), case.states()
    half, last = len(case.ticks) // 2, case.ticks[-1].number
    specs = {
        name: case.shape.spec.model_copy(update={"deletion_vectors": vectors})
        for name, vectors in (("vectors", True), ("merged", False))
    }
    early = {name: scene.add_table(name, spec) for name, spec in specs.items()}
    scene.run(case.ticks[:half])
    late = {f"late_{name}": scene.add_table(f"late_{name}", spec) for name, spec in specs.items()}
    for table_id in late.values():
        scene.backfill(table_id)
    scene.run(case.ticks[half:])
    for number, state in states.items():
        for name in early:
            scene.check_state(state, name, tick=number, texts=False)
    for name, table_id in late.items():
        scene.check_state(states[last], name, texts=False)
        scene.prove(table_id, states[last], everything=True)
        assert scene.check(table_id).is_whole


@pytest.mark.parametrize(
    "stream", [pytest.param(each, id=each.name, marks=[] if each.name in FIRST else FULL) for each in streams()]
)
def test_recorded_streams_are_the_oracles_at_every_mark(open_scene: Open, stream: Stream) -> None:
    """Which is what the upstream had (``tests/unit/envelopes/test_debezium_oracle.py``)."""
    run(open_scene, stream.case)


@pytest.mark.parametrize("stream", [pytest.param(each, id=each.name, marks=FULL) for each in streams()])
def test_recorded_streams_are_the_oracles_between_marks_too(open_scene: Open, stream: Stream) -> None:
    run(open_scene, stream.cut(4))


@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.full(seconds=10)
def test_generated_streams_are_the_oracles_at_every_tick(open_scene: Open, shape: DebeziumShape, seed: int) -> None:
    partitions = 1 + seed % 3
    run(open_scene, drawn(seed, shape, partitions=partitions, clears=0.03 if partitions == 1 else 0))
