"""Tables with ENVELOPE DEBEZIUM on a real topic: what a real Debezium wrote, to what its upstream held."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.crashpoints import VARIABLE
from tests.fixtures.debezium.make import CONNECTORS
from tests.support import kafka as broker
from tests.support.debezium.recorded import Stream, shape_of, streams
from tests.support.debezium.scene import Scene, topic_of
from tests.support.debezium.upstream import RELATIONS, Relation
from tests.support.debezium_oracle import DebeziumShape, upstream_contents
from tests.support.kafka import create_topic, produce
from tests.support.keyed_stack import ChangedTable, check_states, ticks_of
from tests.support.postgres import Postgres
from tests.support.stack import Stack
from tests.support.waiting import wait_until

LONG = 600


def tables_of(stream: Stream, when: str) -> list[ChangedTable]:
    """One that is written with deletion vectors, and one that is merged."""
    return _tables(stream.name.replace(" ", "_"), stream.relation, when)


def _tables(name: str, relation: Relation, when: str) -> list[ChangedTable]:
    writers = {"vectors": True, "merged": False}
    shape = shape_of(relation)
    return [ChangedTable(f"{name}_{when}_{how}", shape=shape, vectors=v) for how, v in writers.items()]


def produce_part(kafka: EmbeddedKafka, topic: str, stream: Stream, number: int) -> None:
    """What was recorded up to a mark. The broker gives the same offsets, and would remove old records."""
    before = stream.ends[number - 1] if number else dict.fromkeys(stream.ends[0], 0)
    due = [r for r in stream.records if before[r.partition] <= r.offset < stream.ends[number][r.partition]]
    produce(kafka, topic, [broker.Record(r.value, r.key, r.partition, int(time.time() * 1000)) for r in due])


def check_contents(
    stack: Stack, table: ChangedTable, tick: int, rows: Sequence[Sequence[str | None]], shape: DebeziumShape
) -> None:
    """As of a tick the table is what the upstream was."""
    with stack.catalog.read() as session:
        point = reads.table_read_point(session, stack.table(table.name).id, tick=tick)
    found = stack._read(point, "data").select([name for name, _ in shape.visible]).to_pylist()
    there = {tuple(row[name] for name in shape.key): tuple(row.values()) for row in found}
    assert len(there) == len(found)
    assert there == upstream_contents(shape, rows), f"{table.name} as of {tick}"


def some(*names: str) -> list[Stream]:
    return [stream for stream in streams() if stream.name in names]


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(some("plain items", "wrapped lines"), id="some"),
        pytest.param(
            [each for each in streams() if each.relation.name != "odd"], marks=pytest.mark.full(seconds=120), id="all"
        ),
    ],
)
@pytest.mark.timeout(600)
def test_recorded_streams_are_their_upstream_at_every_mark(
    chosen: list[Stream], stack: Stack, kafka: EmbeddedKafka
) -> None:
    """By both writers; the same of tables that are added in the middle, and brought up by backfills."""
    topics = [create_topic(kafka, each.relation.partitions) for each in chosen]
    early, late = ([tables_of(each, when) for each in chosen] for when in ("early", "late"))
    sources = [
        stack.create(topic.replace("-", "_"), topic, tables)
        for each, topic, tables in zip(chosen, topics, early, strict=True)
    ]

    def put(numbers: Sequence[int], tables: Sequence[Sequence[ChangedTable]]) -> None:
        for number in numbers:
            for topic, stream in zip(topics, chosen, strict=True):
                produce_part(kafka, topic, stream, number)
            for source, names in zip(sources, tables, strict=True):
                stack.wait_caught_up(source, [table.name for table in names])

    with ExitStack() as running:
        for source in sources:
            running.enter_context(stack.running(source))
        put(range(3), early)
        for source, tables in zip(sources, late, strict=True):
            stack.add(source, tables)
        backfills = [stack.start_backfill(tables[0].name) for tables in late]
        for topic, stream in zip(topics, chosen, strict=True):
            produce_part(kafka, topic, stream, 3)
        for tables in late:
            stack.wait_cut_over([table.name for table in tables])
        assert [backfill.join().state for backfill in backfills] == ["finished"] * len(backfills)
        put([4], [[*one, *other] for one, other in zip(early, late, strict=True)])
    for source, stream, one, other in zip(sources, chosen, early, late, strict=True):
        uppers = {
            tick.number: {lane: end for lane, (_, end) in tick.ranges.items()} for tick in ticks_of(stack, source)
        }
        at = [next(number for number, upper in uppers.items() if upper == ends) for ends in stream.ends[:3]]
        for table in (*one, *other):
            check_states(stack, table, table.states(stack, source), texts=False)
            last = max(uppers)
            check_contents(stack, table, last, stream.rows[-1], table.shape)
        for table in one:
            for tick, rows in zip(at, stream.rows, strict=False):
                check_contents(stack, table, tick, rows, table.shape)


@pytest.mark.parametrize(("connector", "name"), [("plain", "items"), ("wrapped", "lines")])
@pytest.mark.full(seconds=150)
@pytest.mark.timeout(2400)
def test_a_live_debezium_is_killed_and_so_are_the_apps(
    connector: str,
    name: str,
    stack: Stack,
    kafka: EmbeddedKafka,
    postgres: Postgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the middle of snapshots, of ticks and of a backfill; tables are added and cut over meanwhile."""
    prefix, dice = f"{connector}{uuid4().hex[:6]}", Random(3)
    relation = next(each for each in RELATIONS if each.name == name)
    scene = Scene(tmp_path, postgres, kafka, {prefix: CONNECTORS[connector]}, seed=3)
    early, late = _tables(name, relation, "early"), _tables(name, relation, "late")
    source = stack.create(prefix, topic_of(prefix, name), early)
    apps: list[Handle] = []

    def launch() -> None:
        apps.append(stack.launch(source))
        wait_until(lambda: stack.job(apps[-1].job_id).state == "running", LONG, "an app that runs")

    def check(tables: Sequence[ChangedTable]) -> None:
        """When all has been said and read, the tables are what the upstream is."""
        rows = scene.mark().rows[name]
        stack.wait_caught_up(source, [table.name for table in tables], timeout=LONG)
        for table in tables:
            check_contents(stack, table, ticks_of(stack, source)[-1].number, rows, table.shape)

    try:
        scene.writer.fill(15)
        launch()
        scene.hold_and_kill(20)
        scene.writer.write(20, removes=False)
        scene.hold_and_kill(25)
        scene.start()
        check(early)
        for _ in range(2):
            scene.kill()
            scene.start(hold_after=dice.randrange(3, 25))
            scene.snapshot_again(name)
            scene.writer.write(60)
            time.sleep(dice.random())
            stack.launcher.kill(apps[-1])
            scene.wait_held()
            scene.kill()
            launch()
            scene.start()
            scene.writer.write(30)
        stack.add(source, late)
        # Its first commit fails when it is there; then it is stopped, and another one goes on.
        monkeypatch.setenv(VARIABLE, "keyed_put:raise")
        backfill = stack.start_backfill(late[0].name)
        wait_until(lambda: stack.table(late[0].name).position.offsets, LONG, "a first group")
        backfill.stop(LONG)
        monkeypatch.delenv(VARIABLE)
        backfill = stack.start_backfill(late[0].name)
        scene.writer.write(30)
        stack.wait_cut_over([table.name for table in late], timeout=LONG)
        assert backfill.join(LONG).state == "finished"
        scene.writer.write(30)
        check([*early, *late])
    finally:
        scene.close()
        for handle in apps:
            stack.launcher.kill(handle)
    for table in (*early, *late):
        check_states(stack, table, table.states(stack, source), texts=False)
