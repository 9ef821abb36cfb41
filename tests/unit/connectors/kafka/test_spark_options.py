"""Options of Spark's Kafka source, and the reading of its offset log."""

from __future__ import annotations

import json

import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.spark_options import batch_options, parse_offset_log, stream_options
from airflow_provider_mzshare.core.positions import Position

CONFIG = KafkaConfig.from_connection(Connection("bus", "kafka", "b", 9092))
ODD = 'to"pic\\é'


def bounded(lower, upper, *, config=CONFIG, topic="ev", tasks=None):
    return batch_options(config, topic, lower, upper, tasks, readers="mine")


def test_a_stream_starts_at_an_offset_in_every_partition_the_topic_has():
    options = stream_options(CONFIG, "ev", Position({0: 5}), [0, 1, 2], 500)
    assert options == {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.fetch.max.wait.ms": "0",
        "kafka.max.partition.fetch.bytes": "1048576",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "includeHeaders": "false",
        "subscribe": "ev",
        "startingOffsets": '{"ev": {"0": 5, "1": 0, "2": 0}}',
        "maxOffsetsPerTrigger": "500",
    }


def test_a_bounded_read_names_only_the_partitions_that_hold_something():
    options = bounded(Position({0: 5, 1: 7}), Position({0: 5, 1: 9, 10: 3}))
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
        ([125_000] * 4, None, 1024),
        ([10_000] * 32, 5, 128),
        ([500_000], None, 1024),
        ([500_000], 20, 256),
    ],
)
def test_a_reader_asks_for_little_beyond_its_end(sizes, tasks, bytes_):
    options = bounded(Position(), Position(dict(enumerate(sizes))), tasks=tasks)
    assert int(options["kafka.max.partition.fetch.bytes"]) // 1024 == bytes_
    assert options.get("minPartitions") == (str(tasks) if tasks else None)


def test_what_the_connection_says_about_fetching_wins():
    extra = {"max.partition.fetch.bytes": 5_000_000, "fetch.wait.max.ms": 20}
    config = KafkaConfig.from_connection(Connection("bus", "kafka", "b", 9092, extra=extra))
    for options in (
        bounded(Position(), Position({0: 1}), config=config),
        stream_options(config, "ev", Position(), range(1_000), 1),
    ):
        assert options["kafka.max.partition.fetch.bytes"] == "5000000"
        assert options["kafka.fetch.max.wait.ms"] == "20"


def test_a_wait_that_every_partition_would_wait_out_is_cut_short():
    config = KafkaConfig.from_connection(Connection("bus", "kafka", "b", 9092, extra={"fetch.wait.max.ms": 500}))
    assert bounded(Position(), Position({0: 1}), config=config)["kafka.fetch.max.wait.ms"] == "100"
    assert stream_options(config, "ev", Position(), [0], 1)["kafka.fetch.max.wait.ms"] == "100"


@pytest.mark.parametrize(("partitions", "kib"), [(1, 1024), (64, 1024), (200, 327), (512, 128), (5_000, 128)])
def test_the_readers_of_a_wide_topic_fit_into_memory_together(partitions, kib):
    options = stream_options(CONFIG, "ev", Position(), range(partitions), 1)
    assert int(options["kafka.max.partition.fetch.bytes"]) // 1024 == kib


def test_small_reads_that_follow_each_other_share_their_readers():
    ids = {bounded(Position({0: n}), Position({0: n + size}))["kafka.group.id"] for n in (0, 90) for size in (1, 4_000)}
    assert ids == {"mine-32768"}
    assert bounded(Position(), Position({0: 90_000}))["kafka.group.id"] == "mine-1048576", (
        "other settings, other readers"
    )


@pytest.mark.parametrize("upper", [{0: 5}, {0: 4}, {1: 9}])
def test_a_range_without_records_is_not_read(upper):
    with pytest.raises(ValueError, match="nothing to read"):
        bounded(Position({0: 5}), Position(upper))


def test_a_topic_name_is_escaped():
    assert json.loads(stream_options(CONFIG, ODD, Position(), [0], 1)["startingOffsets"]) == {ODD: {"0": 0}}
    assert json.loads(bounded(Position(), Position({0: 1}), topic=ODD)["assign"]) == {ODD: [0]}


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
