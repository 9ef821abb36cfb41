"""Tables that were created one by one, and one that heals, are brought up by one app, exactly."""

from __future__ import annotations

from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.control.catalog.log.merging import merge_backfills
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.arrivals import LATE, NUMBERS, SIBLING, check_logs, check_same_as_sibling, in_ticks, unwritable
from tests.support.kafka import create_topic
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

HEALED = Table("healed", (("n", "bigint"),))


def test_one_app_brings_up_what_was_asked_for_one_by_one_wherever_each_stands(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [SIBLING, HEALED])
    with stack.running(source) as ingestion:
        in_ticks(stack, source, ["sibling", "healed"], count=2)
        with stack.catalog.read() as session:
            folder = stack.collections(session, "healed")["data"]
        with unwritable(stack.warehouse / folder):
            in_ticks(stack, source, ["sibling"], count=1, first=200)
            wait_until(lambda: stack.table("healed").status == "stalled", 90, "it to stall")
        in_ticks(stack, source, ["sibling"], count=3, first=300)
        since = stack.table("healed").since
        for table in (LATE, NUMBERS):
            stack.add(source, [table])
        with stack.catalog.write() as session:
            arrivals.resume_table(session, stack.table("healed").id)
        with stack.catalog.write() as session:
            asked = [one.id for one in active_backfills(session, source)]
            assert list(merge_backfills(session, source, asked)) == asked
        assert len(asked) == 3
        app = stack.start_backfill("late", max_records=150)
        stack.wait_cut_over(["late", "numbers", "healed"])
        assert app.join().state == "finished"
        in_ticks(stack, source, ["sibling", "late", "numbers", "healed"], count=1, first=600)
        assert ingestion.end is None
    check_same_as_sibling(stack, source)
    stack.check(topic, [NUMBERS, HEALED])
    check_logs(stack, source, ["numbers", "healed"])
    assert stack.table("healed").since == since, "what could be read of it still can be"
