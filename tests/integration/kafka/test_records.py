"""A range of a topic, read apart from Spark."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support import extremes
from tests.support.kafka import create_topic
from tests.support.raw_records import send_raw


def test_every_field_at_its_extremes_is_read_as_it_was_sent(kafka: EmbeddedKafka) -> None:
    config = KafkaConfig.from_connection(Connection("bus", "kafka", extra={"bootstrap.servers": kafka.bootstrap}))
    topic, sent = create_topic(kafka, config=extremes.TOPIC_CONFIG), extremes.records()
    assert send_raw(kafka, topic, sent) == 0
    with RecordReader(config, topic) as reader:
        found = [row for batch in reader.read(0, 0, len(sent)) for row in batch.to_pylist()]
    assert [(row["offset"], row["key"], row["value"], row["timestamp"]) for row in found] == [
        (offset, record.key, record.value, extremes.moment(record.timestamp)) for offset, record in enumerate(sent)
    ]
    with KafkaUpstream(config, topic) as upstream:
        sizes = upstream.record_sizes(Position(), Position({0: len(sent)}))
    assert sizes["0"] > extremes.LARGE / len(sent), "a header's name that is no text does not matter"
