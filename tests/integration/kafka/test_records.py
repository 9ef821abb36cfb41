"""A range of a topic, read apart from Spark."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support import extremes
from tests.support.kafka import Record, add_partitions, create_topic, produce
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


def test_many_partitions_are_read_at_once_each_exactly_as_far_as_asked(kafka: EmbeddedKafka) -> None:
    """From and to the middle of some, nothing of others, and of one that is new since the reader was opened."""
    config = KafkaConfig.from_connection(Connection("bus", "kafka", extra={"bootstrap.servers": kafka.bootstrap}))
    topic = create_topic(kafka, 40)
    produce(kafka, topic, [Record(b"%d" % n, partition=p) for p in range(40) for n in range(5)])
    lower = Position({p: p % 3 for p in range(40)})
    upper = Position({p: p % 3 if p % 4 == 0 else 3 + p % 3 for p in range(40)})
    with RecordReader(config, topic) as reader:
        assert places(reader, lower, upper) == expected(lower, upper)
        add_partitions(kafka, topic, 41)
        produce(kafka, topic, [Record(b"%d" % n, partition=40) for n in range(5)])
        later = upper.join(Position({40: 4}))
        assert places(reader, upper, later) == [(40, n, b"%d" % n) for n in range(4)]
        assert places(reader, lower, later) == expected(lower, later)
        assert not places(reader, later, later)


def places(reader: RecordReader, lower: Position, upper: Position) -> list[tuple[int, int, bytes]]:
    rows = [row for batch in reader.read_range(lower, upper) for row in batch.to_pylist()]
    return sorted((row["partition"], row["offset"], row["value"]) for row in rows)


def expected(lower: Position, upper: Position) -> list[tuple[int, int, bytes]]:
    return sorted((int(p), n, b"%d" % n) for p in upper for n in range(lower[p], upper[p]))
