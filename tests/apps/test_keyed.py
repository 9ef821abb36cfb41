"""Tables whose rows change, on a real topic: equal to the oracle at every tick, live, late, and after kills."""

from __future__ import annotations

from typing import cast

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import create_topic, produce
from tests.support.keyed_cases import SHAPES, drawn
from tests.support.keyed_stack import KeyedTable, check_keyed, keyed_tables, sent
from tests.support.stack import Stack, Table

PLAIN = Table("plain", (("name", "text"),))


def test_keyed_tables_of_every_shape_equal_the_oracle_at_every_tick(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 3)
    produce(kafka, topic, sent(drawn(1, ticks=4)))
    keyed = keyed_tables(SHAPES)
    source = stack.create("events", topic, [PLAIN, *keyed])
    names = [table.name for table in (PLAIN, *keyed)]
    with stack.running(source):
        for seed, shape in enumerate(SHAPES.values()):
            produce(kafka, topic, sent(drawn(seed, shape, ticks=3)))
            stack.wait_caught_up(source, names)
    for table in keyed:
        check_keyed(stack, source, cast(KeyedTable, table))
    stack.check(topic, [PLAIN])


def test_a_keyed_table_that_comes_late_is_backfilled_and_cut_over(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 3)
    source = stack.create("events", topic, [PLAIN])
    late = KeyedTable("late", shape=SHAPES["composite inline"])
    with stack.running(source):
        for seed in range(6):
            produce(kafka, topic, sent(drawn(seed, late.shape, ticks=3)))
            stack.wait_caught_up(source, ["plain"])
        stack.add(source, [late])
        backfill = stack.start_backfill("late")
        produce(kafka, topic, sent(drawn(7, late.shape, ticks=3)))
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, sent(drawn(8, late.shape, ticks=3)))
        stack.wait_caught_up(source, ["plain", "late"])
    check_keyed(stack, source, late)
    stack.check(topic, [PLAIN])
