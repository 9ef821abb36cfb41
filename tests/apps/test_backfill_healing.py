"""A stalled table goes on where it stood, a new generation takes an old one's place; what was read once stays so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import NotReadable, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections import commit
from airflow_provider_mzshare.storage.collections.collection import Collection
from tests.support.arrivals import LATE, SIBLING, check_same_as_sibling, records, unwritable
from tests.support.kafka import create_topic, produce
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

OTHER = Table("other", (("n", "bigint"),))
BOTH = ["late", "sibling"]


def collection(stack: Stack, name: str, role: str) -> str:
    with stack.catalog.read() as session:
        return stack.collections(session, name)[role]


def resume(stack: Stack, *names: str) -> None:
    with stack.catalog.write() as session:
        for name in names:
            arrivals.resume_table(session, stack.table(name).id)


def heal(stack: Stack, name: str) -> None:
    resume(stack, name)
    backfill = stack.start_backfill(name)
    stack.wait_cut_over([name])
    assert backfill.join().state == "finished"


def readable(stack: Stack, source: ItemId, name: str) -> dict[int, Counter[tuple[Any, ...]]]:
    """All that can be read of a table, tick by tick."""
    found = {}
    for tick in range(1, stack.store(source).load().last_number + 1):
        try:
            found[tick] = stack.rows(name, tick=tick)
        except NotReadable:
            continue
    return found


def assert_unchanged(stack: Stack, name: str, before: dict[int, Counter[tuple[Any, ...]]]) -> None:
    assert before
    for tick, rows in before.items():
        assert stack.rows(name, tick=tick) == rows, f"{name} as of tick {tick}"


def test_stalled_by_its_data_then_by_its_errors_and_resumed_each_time(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [LATE, SIBLING])
    produced = 0
    with stack.running(source) as ingestion:
        for role in ("data", "errors"):
            produce(kafka, topic, records(produced, 40))
            stack.wait_caught_up(source, BOTH)
            with unwritable(stack.warehouse / collection(stack, "late", role)):
                produce(kafka, topic, records(produced + 40, 40))
                wait_until(lambda: stack.table("late").status == "stalled", 90, "late to stall")
            produce(kafka, topic, records(produced + 80, 40))
            stack.wait_caught_up(source, ["sibling"])
            before = readable(stack, source, "late")
            heal(stack, "late")
            assert_unchanged(stack, "late", before)
            produced += 120
        produce(kafka, topic, records(produced, 40))
        stack.wait_caught_up(source, BOTH)
        assert ingestion.end is None
    check_same_as_sibling(stack, source)


def test_a_commit_that_landed_but_raised_is_found_by_the_backfill(
    stack: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [LATE, SIBLING])
    append, stored_version = commit.add_files, Collection.stored_version
    away: set[str] = set()

    def landed_but_raised(target: Collection, *args: Any, **kwargs: Any) -> None:
        append(target, *args, **kwargs)
        if target.collection_id == wanted:
            away.add(wanted)
            raise OSError("the answer was lost")

    def unreachable(target: Collection) -> int | None:
        if target.collection_id in away:
            raise WarehouseUnreachable(target.collection_id, "it does not answer")
        return stored_version(target)

    with stack.running(source):
        produce(kafka, topic, records(0, 40))
        stack.wait_caught_up(source, BOTH)
        wanted = collection(stack, "late", "data")
        with monkeypatch.context() as patched:
            patched.setattr(commit, "add_files", landed_but_raised)
            patched.setattr(commit, "FIRST_PAUSE_S", 0.001)
            patched.setattr(Collection, "stored_version", unreachable)
            produce(kafka, topic, records(40, 40))
            wait_until(lambda: stack.table("late").status == "stalled", 90, "late to stall")
        assert away, "the commit is there, and nobody was told"
        produce(kafka, topic, records(80, 40))
        stack.wait_caught_up(source, ["sibling"])
        heal(stack, "late")
        produce(kafka, topic, records(120, 40))
        stack.wait_caught_up(source, BOTH)
    check_same_as_sibling(stack, source)


def test_what_cannot_be_written_in_a_backfill_stalls_alone_and_the_others_go_on(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [SIBLING])
    with stack.running(source):
        for turn in range(2):
            produce(kafka, topic, records(turn * 40, 40))
            stack.wait_caught_up(source, ["sibling"])
        stack.add(source, [LATE, OTHER])
        broken = stack.warehouse / collection(stack, "late", "data")
        broken.mkdir(parents=True)
        with unwritable(broken):
            backfill = stack.start_backfill("other")
            stack.wait_cut_over(["other"])
            wait_until(lambda: stack.table("late").status == "stalled", 60, "late to stall")
            assert backfill.join().state == "stalled"
        broken.rmdir()
        heal(stack, "late")
        produce(kafka, topic, records(80, 40))
        stack.wait_caught_up(source, ["late", "sibling", "other"])
    check_same_as_sibling(stack, source)
    stack.check(topic, [OTHER])


def test_a_new_generation_takes_the_place_of_the_old_one_and_no_read_changes(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [LATE, SIBLING])
    with stack.running(source) as ingestion:
        for turn in range(3):
            produce(kafka, topic, records(turn * 40, 40))
            stack.wait_caught_up(source, BOTH)
        before = readable(stack, source, "late")
        old = collection_of_point(stack, "late")
        with stack.catalog.write() as session:
            arrivals.resnapshot_table(session, stack.table("late").id)
        backfill = stack.start_backfill("late")
        produce(kafka, topic, records(120, 40))
        stack.wait_caught_up(source, BOTH)
        assert_unchanged(stack, "late", before)
        assert collection_of_point(stack, "late") == old, "readers see the old one until the swap"
        before = readable(stack, source, "late")
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, records(160, 40))
        stack.wait_caught_up(source, BOTH)
        assert collection_of_point(stack, "late") != old
        assert_unchanged(stack, "late", before)
        assert ingestion.end is None
    check_same_as_sibling(stack, source)


def collection_of_point(stack: Stack, name: str) -> str:
    with stack.catalog.read() as session:
        return reads.table_read_point(session, stack.table(name).id).data


def test_an_empty_topic_has_a_history_of_empty_ticks(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create(
        "events", topic, [LATE, SIBLING], settings=SourceSettings(trigger_interval_ms=200, idle_tick_seconds=1)
    )
    with stack.running(source):
        wait_until(lambda: stack.store(source).load().last_number >= 2, 60, "empty ticks")
        with stack.catalog.write() as session:
            arrivals.resnapshot_table(session, stack.table("late").id)
        backfill = stack.start_backfill("late")
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, records(0, 40))
        stack.wait_caught_up(source, BOTH)
    check_same_as_sibling(stack, source)
    assert not list(Path(backfill.app.folder).iterdir()), "it needed no scratch"
