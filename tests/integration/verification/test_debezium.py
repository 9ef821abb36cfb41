"""Tables with ENVELOPE DEBEZIUM, proved against their upstream and against the oracle. No broker, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.lifecycle.verified import KeyDiffers, VerificationFailed
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.storage.writing import member_commits
from tests.support.debezium_cases import SHAPES, drawn
from tests.support.debezium_oracle import PLACEHOLDER, DebeziumCase, DebeziumShape, Nothing, change_of
from tests.support.keyed_cases import Step, assemble
from tests.support.keyed_scene import KeyedScene

Open = Callable[[DebeziumCase], KeyedScene]
PLAIN = DebeziumShape(columns=(("id", "bigint"), ("name", "text"), ("big", "text")), primary_key=("id",))
ONE = b'{"op": "c", "after": {"id": 1, "name": "one", "big": "large"}}'
KEPT = f'{{"op": "u", "after": {{"id": 1, "name": "two", "big": "{PLACEHOLDER}"}}}}'.encode()
GONE = b'{"op": "d", "before": {"id": 1}}'
CLEAR = b'{"op": "t"}'


def case(*ticks: list[bytes], lane: int = 0) -> DebeziumCase:
    made = assemble(PLAIN, [[Step(lane, None, value) for value in tick] for tick in ticks])
    return DebeziumCase(PLAIN, made.ticks, made.records)


@pytest.fixture
def open_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    made: list[KeyedScene] = []

    def make(case: DebeziumCase) -> KeyedScene:
        made.append(KeyedScene(tmp_path, case, monkeypatch.setattr))
        return made[-1]

    yield make
    for scene in made:
        scene.close()


def written(shape: DebeziumShape, *, vectors: bool = True, **more: object) -> TableSpec:
    return shape.spec.model_copy(update={"deletion_vectors": vectors, **more})


@pytest.mark.parametrize(("name", "clears"), [*((name, 0.0) for name in SHAPES), ("named", 0.05)])
def test_a_table_is_the_oracles_at_every_tick_and_exact(open_scene: Open, name: str, clears: float) -> None:
    """One that was there from the beginning, and one that came late, in groups: the same errors, too."""
    shape = SHAPES[name]
    partitions = 1 if clears else 3
    made = drawn(5, shape, ticks=8, most=20, partitions=partitions, clears=clears)
    scene, states = open_scene(made), made.states()
    first = scene.add_table("t", written(shape, vectors=not clears))
    scene.run(made.ticks[:5])
    late = scene.add_table("late", written(shape, vectors=bool(clears)))
    assert scene.backfill(late) == [(1, 5)]
    scene.run(made.ticks[5:])
    for tick in made.ticks:
        scene.check_state(states[tick.number], tick=tick.number, texts=False)
    scene.check_state(states[8], "late", texts=False)
    assert scene.prove(first, states[8]).key == shape.key
    scene.prove(late, states[8], everything=True)
    said = [each for each in made.records if not isinstance(change_of(shape, each, 1), Nothing)]
    for table in (first, late):
        assert scene.check(table).is_whole
        assert scene.messages(table) == len(said), "each counts once, whatever it did to the table's rows"


def test_a_value_that_no_row_holds_is_an_error_row_that_verify_expects(open_scene: Open) -> None:
    made = case([KEPT, ONE, KEPT], [GONE, KEPT], [ONE], [KEPT])
    scene = open_scene(made)
    table = scene.add_table("t", written(PLAIN))
    scene.run()
    assert [len(state.errors) for state in made.states().values()] == [1, 2, 2, 2]
    scene.check_state(made.states()[4], texts=False)
    scene.prove(table, made.states()[4])
    errors = scene.read(errors=True)
    assert errors.column("value").to_pylist() == [KEPT, KEPT]
    assert set(errors.column("error").to_pylist()) == {
        'field "big": not sent, because it has not changed, and there is no row to take it from'
    }


def test_verify_finds_a_row_and_an_error_row_that_should_not_be_there(open_scene: Open) -> None:
    scene = open_scene(case([ONE], [KEPT]))
    table = scene.add_table("t", written(PLAIN))
    scene.spoil = lambda records: [each for each in records if each.value != ONE]
    scene.run()
    with pytest.raises((KeyDiffers, VerificationFailed), match="not upstream"):
        scene.verify(table)


def test_what_compaction_has_removed_makes_no_table_wrong(open_scene: Open) -> None:
    """Read again, the record that keeps a value seems to have no row."""
    scene = open_scene(case([ONE], [KEPT]))
    table = scene.add_table("t", written(PLAIN))
    scene.run()
    scene.upstream, scene.excuse = scene.upstream[1:], "because the topic is compacted"
    found = scene.verify(table)
    assert (found.verdict, found.unverifiable_keys) == ("unverifiable", 1)


def test_a_table_that_stops_at_bad_records_stops_at_one_that_no_row_can_fill(open_scene: Open) -> None:
    scene = open_scene(case([ONE], [GONE, KEPT]))
    table = scene.add_table("t", written(PLAIN, on_decode_error="stop"))
    scene.run()
    found = scene.table(table)
    assert (found.status, scene.read().num_rows) == ("stalled", 1)
    assert str(found.reason).startswith('partition 0, offset 2 cannot be decoded: field "big": not sent')


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merged"])
def test_a_truncation_takes_away_what_was_there_and_nothing_else(open_scene: Open, vectors: bool) -> None:
    two = ONE.replace(b'"id": 1', b'"id": 2')
    made = case([ONE, two], [CLEAR], [ONE, CLEAR, two, CLEAR, ONE], [CLEAR, CLEAR])
    scene = open_scene(made)
    table = scene.add_table("t", written(PLAIN, vectors=vectors))
    scene.run()
    for number, state in made.states().items():
        scene.check_state(state, tick=number)
    assert [len(state.rows) for state in made.states().values()] == [2, 0, 1, 0]
    scene.prove(table, made.states()[4])


def test_a_truncation_stalls_a_table_whose_topic_has_several_partitions(open_scene: Open) -> None:
    scene = open_scene(case([ONE], [CLEAR]))
    scene.app.lanes = 3
    table = scene.add_table("t", written(PLAIN))
    scene.run()
    found = scene.table(table)
    assert (found.status, scene.read().num_rows) == ("stalled", 1)
    assert found.reason == (
        "truncated: partition 0, offset 1 truncates the table, and the topic has 3 partitions: nothing says which "
        "records of the others came before"
    )
    assert "RESUME and RESNAPSHOT would stop at it again" in hints.heal(found.display, found.reason)


class _Killed(Exception):
    """At a point of a commit."""


def killed_at(monkeypatch: pytest.MonkeyPatch, label: str, after: int) -> None:
    """Once, when that point is passed for the ``after``-th time."""
    left = [after]

    def passed(name: str) -> None:
        left[0] -= name == label
        if left[0] == 0 and name == label:
            raise _Killed

    monkeypatch.setattr(member_commits, "crashpoint", passed)


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merged"])
def test_errors_that_rows_tell_are_the_same_after_a_kill_between_errors_and_data(
    open_scene: Open, vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick is executed again, when its errors are there, or its data too: none of them comes twice or is lost."""
    shape = SHAPES["key"]
    made = drawn(11, shape, ticks=6, most=20)
    scene, states = open_scene(made), made.states()
    table = scene.add_table("t", written(shape, vectors=vectors))
    for tick in made.ticks:
        for after in (1, 2):
            killed_at(monkeypatch, "between_commits", after)
            with suppress(_Killed):
                if after == 1:
                    scene.run([tick])
                else:
                    scene.app.finish_pending()
            scene.restart()
        killed_at(monkeypatch, "", 0)
        scene.app.finish_pending()
    for number, state in states.items():
        scene.check_state(state, tick=number, texts=False)
    scene.prove(table, states[6])


def test_a_backfill_that_is_killed_between_errors_and_data_goes_on_in_other_groups(
    open_scene: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES["key"]
    made = drawn(12, shape, ticks=6, most=20)
    scene, states = open_scene(made), made.states()
    scene.run(made.ticks[:3])
    late = scene.add_table("late", written(shape))
    killed_at(monkeypatch, "between_commits", 1)
    with pytest.raises(_Killed):
        scene.backfill(late)
    killed_at(monkeypatch, "", 0)
    scene.run(made.ticks[3:5])
    assert scene.backfill(late, run=2) == [(1, 5)]
    scene.run(made.ticks[5:])
    scene.check_state(states[6], "late", texts=False)
    scene.prove(late, states[6], everything=True)
