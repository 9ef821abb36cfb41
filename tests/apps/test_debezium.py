"""Tables with ENVELOPE DEBEZIUM, on a real topic: equal to the oracle at every tick, live, late, and after kills."""

from __future__ import annotations

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.debezium_cases import SHAPES, drawn
from tests.support.debezium_oracle import DebeziumShape
from tests.support.kafka import Record, create_topic, produce
from tests.support.keyed_stack import ChangedTable, check_states, sent
from tests.support.stack import Stack, Table

PLAIN = Table("plain", (("op", "text"),))
CREATED = '{{"op": "c", "after": {{"id": {id}, "name": "of {id}"}}}}'


def tables(prefix: str = "") -> list[ChangedTable]:
    """Two of each shape: one with deletion vectors, and one that is merged."""
    return [
        ChangedTable(f"{prefix}{name}" + ("" if vectors else "_merged"), shape=shape, vectors=vectors)
        for vectors in (True, False)
        for name, shape in SHAPES.items()
    ]


def test_changes_of_every_shape_equal_the_oracle_at_every_tick_live_and_late(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic, live, late = create_topic(kafka, 3), tables()[:4], tables("late_")[1:3]
    produce(kafka, topic, sent(drawn(1, SHAPES["key"], ticks=3)))
    source = stack.create("changes", topic, [PLAIN, *live])
    with stack.running(source):
        for seed, shape in enumerate(SHAPES.values()):
            produce(kafka, topic, sent(drawn(seed, shape, ticks=2)))
            stack.wait_caught_up(source, ["plain", *(table.name for table in live)])
        stack.add(source, late)
        backfill = stack.start_backfill(late[0].name)
        produce(kafka, topic, sent(drawn(7, SHAPES["composite"], ticks=3)))
        stack.wait_cut_over([table.name for table in late])
        assert backfill.join().state == "finished"
        produce(kafka, topic, sent(drawn(8, SHAPES["named"], ticks=3)))
        stack.wait_caught_up(source, ["plain", *(table.name for table in (*live, *late))])
    for table in (*live, *late):
        check_states(stack, table, table.states(stack, source), texts=False)


def test_a_truncation_empties_the_table_and_stalls_one_of_several_partitions(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    one, several = create_topic(kafka, 1), create_topic(kafka, 2)
    shape = SHAPES["named"]
    changed = [ChangedTable(f"one{vectors}", shape=shape, vectors=vectors) for vectors in (True, False)]
    stalled = ChangedTable("several", shape=shape)
    source = stack.create("one", one, changed)
    other = stack.create("several_partitions", several, [PLAIN, stalled])
    with stack.running(source), stack.running(other):
        for seed in range(3):
            produce(kafka, one, sent(drawn(seed, shape, ticks=2, partitions=1, clears=0.1)))
            stack.wait_caught_up(source, [table.name for table in changed])
        produce(kafka, several, [Record(b'{"op": "t"}', partition=1)])
        stack.wait_caught_up(other, ["plain"])
    for table in changed:
        check_states(stack, table, table.states(stack, source), texts=False)
    found = stack.table("several")
    assert found.status == "stalled"
    assert str(found.reason).startswith("truncated: partition 1, offset 0 truncates the table, and the topic has 2")


def test_a_source_that_starts_behind_a_truncation_has_the_table_again(stack: Stack, kafka: EmbeddedKafka) -> None:
    """What a table is told that has stalled at one, on the same topic of several partitions."""
    topic, before, after = create_topic(kafka, 2), CREATED.format(id=1), CREATED.format(id=2)
    for value in (before, '{"op": "t"}', after):
        produce(kafka, topic, [Record(value.encode(), partition=0)])
    for value in (before.replace("1", "3"), after.replace("2", "4")):
        produce(kafka, topic, [Record(value.encode(), partition=1)])
    shape = DebeziumShape(columns=(("id", "bigint"), ("name", "text")), primary_key=("id",))
    stalled, again = ChangedTable("stalled", shape=shape), ChangedTable("again", shape=shape)
    source = stack.create("all_of_it", topic, [PLAIN, stalled])
    behind = stack.create("behind_it", topic, [again], start=Start(mode="offset", asked={"0": 2, "1": 1}))
    with stack.running(source), stack.running(behind):
        stack.wait_caught_up(source, ["plain"])
        stack.wait_caught_up(behind, ["again"])
        found = stack.table("stalled")
        assert (found.status, "START OFFSET" in hints.heal(found.display, found.reason)) == ("stalled", True)
        produce(kafka, topic, [Record(b'{"op": "d", "before": {"id": 4}}', partition=1)])
        stack.wait_caught_up(behind, ["again"])
    assert [row[:2] for row in stack.rows("again")] == [(2, "of 2")]
