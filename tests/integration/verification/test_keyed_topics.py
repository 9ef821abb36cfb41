"""Tables whose rows change, proved against a real topic: also one that may have lost records by compaction."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from airflow_provider_mzshare.control.lifecycle.verified import KeyDiffers
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.state import Tick
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.driven import DrivenIngestion
from tests.support.kafka import Record, admin, create_topic, positions, produce, produce_in_transaction
from tests.support.keyed_cases import PLAIN
from tests.support.verifying import Pipeline

ONE, TWO = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}'
SPEC: TableSpec = PLAIN.spec


class KeyedPipeline(Pipeline):
    """Written by the app's own commits, which fold events into rows."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path, topic: str) -> None:
        super().__init__(kafka, folder, topic)
        self._app = DrivenIngestion(self.catalog, self.root, self.source_id, self._records, JobId("ingest-2"))

    def tick(self, upper: Position | None = None) -> Tick:
        return self._app.tick(upper or Position(positions(self._kafka, self.topic)))


def compact(kafka: EmbeddedKafka, topic: str) -> None:
    """From now on it may be compacted; nothing is, so soon."""
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(kafka)
    client.incremental_alter_configs([resource])[resource].result(30)


def test_keys_of_a_real_topic_are_compared_and_those_whose_record_is_gone_are_unverifiable(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """An aborted transaction leaves an offset without a record, as compaction does: the writer is given one."""
    pipeline = KeyedPipeline(kafka, tmp_path, create_topic(kafka, 2))
    try:
        table = pipeline.add_table("t", SPEC)
        produce(kafka, pipeline.topic, [Record(ONE, b"a", 0), Record(ONE, b"b", 1), Record(b"{", b"b", 1)])
        produce(kafka, pipeline.topic, [Record(ONE, None, 0), Record(TWO, b"c", 0), Record(TWO, b"d", 1)])
        pipeline.tick()
        produce(kafka, pipeline.topic, [Record(None, b"c", 0), Record(TWO, b"b", 1)])
        pipeline.tick()
        found = pipeline.verify(table)
        assert (found.verdict, found.rows, found.errors) == ("exact", 3, 2)
        assert [(each.partition, each.rows, each.errors) for each in found.partitions] == [(0, 1, 1), (1, 2, 1)]

        produce_in_transaction(kafka, pipeline.topic, [Record(TWO, b"x", 0)], commit=False)
        gone = {"key": b"a", "value": TWO, "partition": 0, "offset": 4}
        pipeline.spoil = lambda records: pa.concat_tables(
            [records, pa.Table.from_pylist([{**gone, "timestamp": 0}], records.schema)]
        )
        pipeline.tick()
        with pytest.raises(KeyDiffers) as failed:
            pipeline.verify(table)
        assert (failed.value.what, failed.value.key) == ("not upstream", {"key": "a"})
        assert (failed.value.upstream, failed.value.stored) == ((0, 0), (0, 4))

        compact(kafka, pipeline.topic)
        found = pipeline.verify(table)
        assert (found.verdict, found.rows, found.unverifiable_keys) == ("unverifiable", 3, 1)
        assert found.reason == "1 keys have records that are gone upstream, because the topic is compacted"
    finally:
        pipeline.close()
