"""A compacted topic removes a delete while a keyed table waits: the table stalls, and never shows the key for good."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

import pytest

from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.core.ticklog.arrival_plans import TombstonesLost
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, consume, create_topic, produce
from tests.support.stack import FAST, Stack, Table
from tests.support.waiting import wait_until

PLAIN = Table("plain", (("n", "bigint"),), include=("key",))
COMPACTED = {
    "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0", "max.compaction.lag.ms": "100",
}  # fmt: skip
SHORT, LONG = 30, 900
"""Seconds that a delete is kept."""
PATIENCE = 240
"""Seconds for anything else."""


class Scene:
    """A source with a table that appends, and a keyed one that a backfill has brought to where the log ends now."""

    def __init__(self, stack: Stack, kafka: EmbeddedKafka, kept: int) -> None:
        self.stack, self.kafka = stack, kafka
        self.topic = create_topic(kafka, config=COMPACTED | {"delete.retention.ms": str(1000 * kept)})
        self.source = stack.create("events", self.topic, [PLAIN])

    def put(self, keys: Iterable[str], n: int | None = 1) -> None:
        value = None if n is None else json.dumps({"n": n}).encode()
        produce(self.kafka, self.topic, [Record(value, key=key.encode()) for key in keys])

    def bring_up(self) -> None:
        """The keyed table has the rows of a, b and c; then its backfill pauses."""
        self.put("abc")
        self.stack.wait_caught_up(self.source, ["plain"], PATIENCE)
        columns = (ColumnSpec(name="n", type="bigint"),)
        include = (Include(what="key", name="k"),)
        spec = TableSpec(reference=self.topic, format="json", columns=columns, include=include, envelope="upsert")
        with self.stack.catalog.write() as session:
            items.create_table(session, name=("public", "keyed"), source_id=self.source, spec=spec)
        self.backfill = self.stack.start_backfill("keyed")
        self.stack.wait_caught_up(self.source, ["keyed"], PATIENCE)
        self.set_rate(0)
        assert self.keys() == {"a", "b", "c"}

    def set_rate(self, rate: int | None) -> None:
        with self.stack.catalog.write() as session:
            items.set_settings(session, self.source, FAST.model_copy(update={"backfill_rate": rate}))

    def keys(self) -> set[str]:
        return {row[1] for row in self.stack.rows("keyed")}

    def holds_delete(self) -> bool:
        """Is the delete of a still there? Further records begin new segments: the newest one is never cleaned."""
        self.put("z", n=0)
        time.sleep(0.2)
        return any(message.key() == b"a" and message.value() is None for message in consume(self.kafka, self.topic))

    def holds_row(self) -> bool:
        self.put("z", n=0)
        time.sleep(0.2)
        return any(message.key() == b"a" and message.value() is not None for message in consume(self.kafka, self.topic))


@pytest.mark.timeout(900)
@pytest.mark.full(seconds=150)
def test_a_delete_that_is_compacted_away_while_a_backfill_pauses(stack: Stack, kafka: EmbeddedKafka) -> None:
    scene = Scene(stack, kafka, SHORT)
    with stack.running(scene.source) as ingestion:
        scene.bring_up()
        scene.put("a", n=None)
        wait_until(lambda: not scene.holds_delete(), SHORT + PATIENCE, "the delete to be compacted away")
        end = scene.backfill.join(PATIENCE)
        assert (end.state, (end.error or "")[:16]) == ("stalled", "tombstones_lost:")
        table = stack.table("keyed")
        assert (table.status, (table.reason or "")[:16]) == ("stalled", "tombstones_lost:")
        with stack.catalog.write() as session, pytest.raises(TombstonesLost):
            arrivals.resume_table(session, table.id)
        scene.set_rate(None)
        refill(stack, table.id)
        assert scene.keys() == {"b", "c", "z"}
        assert ingestion.end is None
        assert stack.table("plain").status == "live"


def refill(stack: Stack, table_id: ItemId) -> None:
    with stack.catalog.write() as session:
        arrivals.resnapshot_table(session, table_id)
    backfill = stack.start_backfill("keyed")
    stack.wait_cut_over(["keyed"], timeout=PATIENCE)
    assert backfill.join().state == "finished"


@pytest.mark.timeout(900)
@pytest.mark.full(seconds=150)
def test_the_same_pause_within_the_time_that_deletes_are_kept(stack: Stack, kafka: EmbeddedKafka) -> None:
    scene = Scene(stack, kafka, LONG)
    with stack.running(scene.source):
        scene.bring_up()
        scene.put("a", n=None)
        began = time.monotonic()
        wait_until(lambda: not scene.holds_row(), SHORT + PATIENCE, "the row that was deleted to be compacted away")
        while time.monotonic() - began < SHORT:
            assert scene.holds_delete()
        scene.set_rate(None)
        stack.wait_cut_over(["keyed"], timeout=PATIENCE)
        stack.wait_caught_up(scene.source, ["keyed"], PATIENCE)
        assert scene.keys() == {"b", "c", "z"}
        assert scene.backfill.join().state == "finished"
