"""A table added to a running source arrives whole and exact, is cut over, and nobody else notices."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source, ticks_from
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.arrivals import LATE, NUMBERS, SIBLING, check_same_as_sibling, in_ticks, mint, record, records
from tests.support.kafka import consume, create_topic, delete_records, produce, produce_in_transaction
from tests.support.stack import FAST, Stack, Table
from tests.support.waiting import wait_until

HISTORY = 100_000
"""Records. Of much less, a reader's last answer and its batches cut in two are more than a fifth."""


def set_rate(stack: Stack, source: ItemId, rate: int | None) -> None:
    with stack.catalog.write() as session:
        items.set_settings(session, source, FAST.model_copy(update={"backfill_rate": rate}))


def test_a_table_added_to_a_running_source_arrives_exact(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [NUMBERS, SIBLING])
    with stack.running(source) as ingestion:
        in_ticks(stack, source, ["numbers", "sibling"], count=4)
        stack.add(source, [LATE])
        stack.add(source, [Table("from_now", (("n", "bigint"),))], snapshot=False)
        assert stack.table("late").status == "backfilling"
        backfill = stack.start_backfill("late")
        produce(kafka, topic, records(400, 100))
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, records(500, 100))
        stack.wait_caught_up(source, ["late", "numbers", "sibling", "from_now"])
        assert ingestion.end is None
        assert len(list(ingestion.app.folder.glob("checkpoint-*"))) == 1, "the query was never restarted"
    check_same_as_sibling(stack, source)
    stack.check(topic, [NUMBERS])
    assert stack.rows("from_now").total() + stack.error_places("from_now").total() == 200
    with stack.catalog.read() as session:
        certificate = last_certificate(session, stack.table("late").id)
    assert certificate is not None
    assert certificate.cutover.gap(certificate.start) == certificate.rows + certificate.errors
    assert certificate.ingestion_job == ingestion.app.job_id


def test_tables_of_one_transaction_are_read_for_once_also_while_the_ingestion_is_down(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, records(0, HISTORY))
    source = stack.create("events", topic, [SIBLING])
    with stack.running(source):
        stack.wait_caught_up(source, ["sibling"])
    before = kafka.bytes_out(topic)
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before

    late = [LATE, Table("lines", format="text"), Table("raw", format="bytes", include=("timestamp",))]
    names = [table.name for table in late]
    stack.add(source, late)
    assert len({stack.backfill_id(name) for name in names}) == 1
    backfill = stack.start_backfill("late")
    for name in names:
        stack.arm(name)
    shared = kafka.bytes_out(topic) - before - plain
    print(f"bytes from the broker: plain consumer {plain}, three tables {shared}, ratio {shared / plain:.3f}")
    assert shared <= 1.2 * plain, "read once for all"
    assert {stack.table(name).status for name in names} == {"converging"}

    produce(kafka, topic, records(HISTORY, 100))
    with stack.running(source):
        stack.wait_cut_over(names)
        assert backfill.join().state == "finished"
        stack.wait_caught_up(source, ["sibling", *names])
    stack.check(topic, late)
    check_same_as_sibling(stack, source)


def test_a_backfill_may_be_ahead_of_the_ingestion_and_behind_it_and_paced(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [SIBLING])
    with stack.running(source):
        in_ticks(stack, source, ["sibling"], count=6)
    produce(kafka, topic, records(600, 100))
    mint(stack, source)
    set_rate(stack, source, 0)
    stack.add(source, [LATE])
    running: list[bool] = []
    backfill = stack.start_backfill("late", on_running=lambda: running.append(True))
    wait_until(lambda: bool(running), 30, "the paused app to say that it runs")
    assert stack.table("late").next_tick == 1, "a paused backfill reads nothing"

    set_rate(stack, source, 20)
    moved = wait_until(lambda: stack.table("late").next_tick - 1, 30, "the first group")
    assert stack.table("late").position.gap(stack.store(source).load().start) <= 200, "what ten seconds allow"
    # The next one is due ten seconds later, unless the rate changes.
    began = time.monotonic()
    set_rate(stack, source, None)
    wait_until(lambda: stack.table("late").position == stack.store(source).load().upper, 30, "the pending tick too")
    print(f"{moved} ticks in the first group, the rest {time.monotonic() - began:.1f} s after the rate was lifted")
    assert time.monotonic() - began < 9
    assert stack.store(source).load().pending, "the backfill is ahead of the ingestion app"
    assert stack.table("late").upper > stack.table("sibling").upper

    stack.arm("late")
    with stack.running(source):
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, records(700, 100))
        stack.wait_caught_up(source, ["late", "sibling"])
    check_same_as_sibling(stack, source)


def test_an_idle_topic_with_an_empty_partition_and_markers_last_converges_at_once(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic = create_topic(kafka, 3)  # partition 2 stays empty
    produce_in_transaction(kafka, topic, records(0, 50))
    produce_in_transaction(kafka, topic, records(50, 50), commit=False)
    idle = SourceSettings(trigger_interval_ms=200, idle_tick_seconds=600)
    source = stack.create("events", topic, [SIBLING], settings=idle)
    with stack.running(source):
        stack.wait_caught_up(source, ["sibling"])
        stack.add(source, [LATE])
        backfill = stack.start_backfill("late")
        stack.arm("late")
        armed_at = stack.store(source).load().last_number
        stack.wait_cut_over(["late"])
        assert stack.store(source).load().last_number <= armed_at + 3
        assert backfill.join().state == "finished"
        produce(kafka, topic, [record(n, partition=2) for n in range(100, 120)])
        stack.wait_caught_up(source, ["late", "sibling"])
    check_same_as_sibling(stack, source)


def test_dropped_in_the_middle_and_made_anew_under_the_same_name(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [SIBLING])
    with stack.running(source):
        in_ticks(stack, source, ["sibling"], count=3)
        stack.add(source, [LATE])
        set_rate(stack, source, 10)
        old = stack.start_backfill("late")
        wait_until(lambda: stack.table("late").next_tick > 1, 30, "a part of the history")
        old_id = stack.table("late").id
        with stack.catalog.write() as session:
            items.drop_table(session, old_id)
        stack.add(source, [LATE])
        set_rate(stack, source, None)
        assert stack.table("late").id != old_id
        assert stack.table("late").next_tick == 1
        new = stack.start_backfill("late")
        assert old.join().state == "finished"
        stack.wait_cut_over(["late"])
        assert new.join().state == "finished"
        produce(kafka, topic, records(300, 50))
        stack.wait_caught_up(source, ["late", "sibling"])
    check_same_as_sibling(stack, source)


def test_history_that_retention_takes_meanwhile_stalls_the_new_table_alone(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [SIBLING])
    with stack.running(source) as ingestion:
        in_ticks(stack, source, ["sibling"], count=2)
        set_rate(stack, source, 0)
        stack.add(source, [LATE])
        backfill = stack.start_backfill("late")
        delete_records(kafka, topic, {0: 10})
        set_rate(stack, source, None)
        end = backfill.join()
        assert end.state == "stalled"
        assert "begins at 10" in (end.error or "")
        assert stack.table("late").status == "stalled"
        assert "partition 0" in (stack.table("late").reason or "")
        produce(kafka, topic, records(200, 50))
        stack.wait_caught_up(source, ["sibling"])
        assert ingestion.end is None
    assert stack.table("sibling").status == "live"
    assert stack.rows("sibling").total() + stack.error_places("sibling").total() == 250


def test_a_table_is_filled_anew_with_what_retention_has_left(stack: Stack, kafka: EmbeddedKafka) -> None:
    """A part of a tick is gone, and in one partition all that was in it."""
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [SIBLING])
    with stack.running(source):
        in_ticks(stack, source, ["sibling"], count=2)
        delete_records(kafka, topic, {0: 70, 1: 100})
        with stack.catalog.write() as session:
            table = items.find_table(session, ("public", "sibling"))
            state = load_state(session, lock_source(session, source))
            asked = arrival_plans.resnapshot(state, table.id, "sibling", start_tick=1)
            ticks = ticks_from(session, source, asked.tick)
            arrivals.heal(session, state, arrival_plans.without_gone(asked, Position({0: 70, 1: 100}), ticks))
        backfill = stack.start_backfill("sibling")
        stack.wait_cut_over(["sibling"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, records(200, 20))
        stack.wait_caught_up(source, ["sibling"])
    places = {row[-2:] for row in stack.rows("sibling")} | set(stack.error_places("sibling"))
    assert places == {(0, offset) for offset in range(70, 110)} | {(1, offset) for offset in range(100, 110)}


@pytest.mark.full
def test_the_broker_restarts_while_a_table_arrives(jars: Path, stack: Stack, tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path / "own-broker", jars=jars) as broker:
        own = Stack(tmp_path / "own", broker, Catalog(f"sqlite:///{tmp_path / 'own.db'}"), stack.spark)
        topic = create_topic(broker, 2)
        source = own.create("events", topic, [SIBLING])
        with own.running(source) as ingestion:
            in_ticks(own, source, ["sibling"], count=3)
            set_rate(own, source, 20)
            own.add(source, [LATE])
            backfill = own.start_backfill("late")
            wait_until(lambda: own.table("late").next_tick > 1, 30, "a part of the history")
            broker.kill()
            set_rate(own, source, None)
            broker.start()
            produce(broker, topic, records(300, 100))
            own.wait_cut_over(["late"], timeout=120)
            assert backfill.join().state == "finished"
            own.wait_caught_up(source, ["late", "sibling"])
            assert ingestion.end is None
        check_same_as_sibling(own, source)
