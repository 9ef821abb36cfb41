"""A look at a few records tells about how large all are; it is short, and asks little of the broker."""

from __future__ import annotations

import time

import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.sampling import MAX_PARTITIONS
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, create_topic, delete_records, groups, produce, produce_in_transaction


def look(kafka: EmbeddedKafka, topic: str, upper: dict[int, int], lower: dict[int, int] | None = None):
    config = KafkaConfig.from_connection(Connection("bus", "kafka", extra={"bootstrap.servers": kafka.bootstrap}))
    with KafkaUpstream(config, topic) as upstream:
        upstream.describe()
        return upstream.record_sizes(Position(lower or {}), Position(upper))


def records(count: int, size: int, partition: int = 0) -> list[Record]:
    return [Record(b"v" * size, partition=partition) for _ in range(count)]


def test_sizes_are_told_by_partition_with_keys_and_over_time(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 4)
    produce(kafka, topic, records(500, 100) + records(500, 300))
    produce(kafka, topic, [Record(b"v" * 90, key=b"k" * 10, partition=1), Record(None, key=b"k" * 20, partition=1)])
    produce(kafka, topic, records(50, 1_000, 2))
    sizes = look(kafka, topic, {0: 1_000, 1: 2, 2: 20, 3: 0})
    assert sizes.keys() == {"0", "1", "2"}
    assert sizes["0"] == pytest.approx(233, abs=40), "two looks of three are in the later half"
    assert (sizes["1"], sizes["2"]) == (60, 1_000)


def test_only_the_range_asked_for_is_looked_at(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, records(20, 5) + records(20, 50) + records(20, 500))
    assert look(kafka, topic, {0: 40}, {0: 20}) == {"0": 50}
    assert look(kafka, topic, {0: 40}, {0: 40}) == {}


def test_what_is_gone_aborted_or_never_came_is_not_counted(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, records(10, 10))
    produce_in_transaction(kafka, topic, records(10, 1_000), commit=False)
    produce(kafka, topic, records(10, 10))
    assert look(kafka, topic, {0: 31}) == {"0": 10}
    delete_records(kafka, topic, {0: 31})
    assert look(kafka, topic, {0: 31}) == {}


def test_a_look_at_many_partitions_is_short_small_and_leaves_no_group(kafka: EmbeddedKafka) -> None:
    topic, partitions = create_topic(kafka, 40), 40
    payload = [record for p in range(partitions) for record in records(400, 1_000, p)]
    produce(kafka, topic, payload)
    before = groups(kafka)
    began = time.monotonic()
    sizes = look(kafka, topic, dict.fromkeys(range(partitions), 400))
    assert time.monotonic() - began < 3
    assert 1 <= len(sizes) <= MAX_PARTITIONS
    assert set(sizes.values()) == {1_000}
    assert kafka.bytes_out(topic) < kafka.bytes_in(topic) / 2
    assert groups(kafka) == before
