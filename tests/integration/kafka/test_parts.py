"""Ranges that tasks read by themselves: all parts together are the range, as one client reads it."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.parts import parts_of
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import UpstreamChanged
from tests.support.kafka import Record, create_topic, delete_records, positions, produce, produce_in_transaction


@pytest.fixture
def config(kafka: EmbeddedKafka) -> KafkaConfig:
    return KafkaConfig.from_connection(Connection("bus", "kafka", extra={"bootstrap.servers": kafka.bootstrap}))


def rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[int, int, bytes | None, bytes]]:
    found = [row for batch in batches for row in batch.to_pylist()]
    return [(row["partition"], row["offset"], row["key"], row["value"]) for row in found]


def test_the_parts_of_any_range_are_the_range(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    """Across transactions, half of which are aborted; each record once, those of a partition in order within a part."""
    topic = create_topic(kafka, 3)
    for first in range(0, 900, 90):
        produce(kafka, topic, [Record(b"%d" % n, partition=n % 3) for n in range(first, first + 30)])
        for begin, commit in ((30, True), (60, False)):
            several = [Record(b"%d" % n, partition=n % 3) for n in range(first + begin, first + begin + 30)]
            produce_in_transaction(kafka, topic, several, commit=commit)
    end, chance = Position(positions(kafka, topic)), random.Random(3)
    for tasks in (1, 2, 3, 7):
        lower = Position({p: chance.randrange(end[p] // 2) for p in range(3)})
        upper = Position({p: chance.randrange(lower[p], end[p] + 1) for p in range(3)})
        with RecordReader(config, topic) as reader:
            whole = rows(reader.read_range(lower, upper))
        parts = pickle.loads(pickle.dumps(parts_of(config, topic, lower, upper, tasks)))
        read = [rows(parts.read(text)) for text in parts.texts]
        assert sorted(row for part in read for row in part) == sorted(whole)
        assert len(parts.texts) <= tasks
        for part in read:
            for partition in range(3):
                offsets = [row[1] for row in part if row[0] == partition]
                assert offsets == sorted(offsets)


def test_a_range_that_is_gone_is_told_of(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    topic = create_topic(kafka, 1)
    produce(kafka, topic, [Record(b"%d" % n, partition=0) for n in range(50)])
    delete_records(kafka, topic, {0: 20})
    parts = parts_of(config, topic, Position({0: 10}), Position({0: 50}), 1)
    with pytest.raises(UpstreamChanged):
        [list(parts.read(text)) for text in parts.texts]


def test_what_is_secret_is_in_no_text(config: KafkaConfig) -> None:
    secret = KafkaConfig("bus", {**config.values, "sasl.password": "open sesame"})
    parts = parts_of(secret, "any", Position(), Position({0: 5}), 2)
    assert "sesame" not in "".join(parts.texts) + repr(parts)
