"""Options of Spark's Kafka source, and the reading of its offset log."""

from __future__ import annotations

import json

import pytest

from airflow_provider_mzshare.storage.connections import Connection
from airflow_provider_mzshare.storage.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.storage.connectors.kafka.spark import batch_options, parse_offset_log, stream_options
from airflow_provider_mzshare.types.positions import Position

CONFIG = KafkaConfig.from_connection(Connection("bus", "kafka", "b", 9092))
ODD = 'to"pic\\é'


def test_a_stream_starts_at_an_offset_in_every_partition_the_topic_has():
    options = stream_options(CONFIG, "ev", Position({0: 5}), [0, 1, 2], 500)
    assert options == {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "includeHeaders": "false",
        "subscribe": "ev",
        "startingOffsets": '{"ev": {"0": 5, "1": 0, "2": 0}}',
        "maxOffsetsPerTrigger": "500",
    }


def test_a_bounded_read_names_only_the_partitions_that_hold_something():
    options = batch_options(CONFIG, "ev", Position({0: 5, 1: 7}), Position({0: 5, 1: 9, 10: 3}))
    assert options["assign"] == '{"ev": [1, 10]}'
    assert json.loads(options["startingOffsets"]) == {"ev": {"1": 7, "10": 0}}
    assert json.loads(options["endingOffsets"]) == {"ev": {"1": 9, "10": 3}}
    assert options["kafka.isolation.level"] == "read_committed"
    assert options["failOnDataLoss"] == "true"
    assert "subscribe" not in options
    assert "minPartitions" not in options


@pytest.mark.parametrize(
    ("sizes", "tasks", "bytes_"),
    [
        ([1], None, 32),
        ([125_000] * 4, None, 976),
        ([10_000] * 32, 5, 78),
        ([500_000], None, 1024),
        ([500_000], 20, 195),
    ],
)
def test_a_reader_asks_for_little_beyond_its_end(sizes, tasks, bytes_):
    options = batch_options(CONFIG, "ev", Position(), Position(dict(enumerate(sizes))), tasks)
    assert int(options["kafka.max.partition.fetch.bytes"]) // 1024 == bytes_
    assert options.get("minPartitions") == (str(tasks) if tasks else None)


def test_what_the_connection_says_about_fetching_wins():
    extra = {"max.partition.fetch.bytes": 5_000_000}
    config = KafkaConfig.from_connection(Connection("bus", "kafka", "b", 9092, extra=extra))
    assert batch_options(config, "ev", Position(), Position({0: 1}))["kafka.max.partition.fetch.bytes"] == "5000000"


@pytest.mark.parametrize("upper", [{0: 5}, {0: 4}, {1: 9}])
def test_a_range_without_records_is_not_read(upper):
    with pytest.raises(ValueError, match="nothing to read"):
        batch_options(CONFIG, "ev", Position({0: 5}), Position(upper))


def test_a_topic_name_is_escaped():
    assert json.loads(stream_options(CONFIG, ODD, Position(), [0], 1)["startingOffsets"]) == {ODD: {"0": 0}}
    assert json.loads(batch_options(CONFIG, ODD, Position(), Position({0: 1}))["assign"]) == {ODD: [0]}


def test_the_offset_log_gives_the_ends_of_a_batch():
    text = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"ev":{"2":75001,"1":0,"0":75017}}'
    assert parse_offset_log(text, "ev") == Position({0: 75017, 2: 75001})
    assert parse_offset_log(text + "\n", "ev") == Position({0: 75017, 2: 75001})


@pytest.mark.parametrize(
    "text",
    ["", "v1", "v1\n{}", 'v2\n{}\n{"ev":{"0":1}}', 'v1\n{}\n{"other":{"0":1}}', "v1\n{}\n-", 'v1\n{}\n{"ev":{"0":1}',
     'v1\n{}\n{"ev":{"0":1}}\n{"ev":{"0":2}}', 'v1\n{}\n{"ev":{"0":-1}}', 'v1\n{}\n{"ev":[1]}'],
)  # fmt: skip
def test_another_offset_log_is_refused(text):
    with pytest.raises(ValueError):
        parse_offset_log(text, "ev")
