"""A topic as an upstream, on a real broker: what it is, how far it reaches, where to start, when it changed."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from airflow_provider_mzshare.connectors.base import Compaction, ReferenceInfo, Upstream
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import BadStart, UpstreamChanged
from tests.support.kafka import (
    Record,
    add_partitions,
    admin,
    consume,
    create_topic,
    delete_records,
    delete_topic,
    open_transaction,
    positions,
    produce,
    produce_in_transaction,
)
from tests.support.waiting import wait_until


@contextmanager
def upstream(kafka, topic: str) -> Iterator[KafkaUpstream]:
    extra = {"bootstrap.servers": kafka.bootstrap, "group.id": "mine"}
    with KafkaUpstream(KafkaConfig.from_connection(Connection("bus", "kafka", extra=extra)), topic) as opened:
        as_protocol: Upstream = opened
        assert as_protocol is opened
        yield opened


def records(count: int, partition: int = 0, timestamp: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, partition=partition, timestamp=timestamp) for n in range(count)]


def test_how_a_topic_compacts(kafka):
    """Its own settings, else the broker's; they may change at any time."""
    settings = {"cleanup.policy": "compact,delete", "delete.retention.ms": "1500", "min.compaction.lag.ms": "70"}
    with upstream(kafka, create_topic(kafka, config=settings)) as opened:
        assert opened.compaction() == Compaction(1_500, 70)
    with upstream(kafka, create_topic(kafka, config={"cleanup.policy": "compact"})) as opened:
        assert opened.compaction() == Compaction(24 * 3_600_000)
    topic = create_topic(kafka)
    with upstream(kafka, topic) as opened:
        assert opened.compaction() is None
        changed = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[changed])
        client = admin(kafka)
        client.incremental_alter_configs([resource])[resource].result(30)
        wait_until(lambda: opened.compaction() is not None, 10, "the changed policy")


def test_a_tombstone_is_kept_as_long_as_the_topic_says_and_no_longer(kafka):
    """What the rule about tombstones rests on. The log begins where it began: nothing tells of the loss."""
    settings = {
        "cleanup.policy": "compact", "delete.retention.ms": "3000", "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0", "max.compaction.lag.ms": "100",
    }  # fmt: skip
    topic = create_topic(kafka, config=settings)
    written = time.monotonic()
    produce(kafka, topic, [Record(b"1", key=b"a"), Record(None, key=b"a")])

    def left() -> list[tuple[bytes, bytes | None]]:
        # The newest segment is never cleaned: further records begin new ones.
        produce(kafka, topic, [Record(b"x", key=b"b")])
        time.sleep(0.15)
        return [(message.key(), message.value()) for message in consume(kafka, topic)]

    wait_until(lambda: (b"a", b"1") not in left(), 60, "the replaced record to be gone")
    if time.monotonic() - written < 3.0:
        assert (b"a", None) in left()
    wait_until(lambda: (b"a", None) not in left(), 60, "the tombstone to be gone")
    assert time.monotonic() - written > 3.0
    with upstream(kafka, topic) as opened:
        assert opened.begin_offsets() == Position()


def test_a_new_partition_is_described_and_starts_at_zero(kafka):
    topic = create_topic(kafka, 2)
    produce(kafka, topic, records(3, 1))
    with upstream(kafka, topic) as opened:
        before = opened.describe()
        assert before.partitions == (0, 1)
        assert before.incarnation == before.topic_id
        add_partitions(kafka, topic, 4)
        wait_until(lambda: opened.describe().partitions == (0, 1, 2, 3), 10, "the new partitions")
        assert opened.describe().topic_id == before.topic_id
        assert opened.begin_offsets() == Position()
        assert opened.end_offsets() == Position({1: 3})
        assert opened.references() == (ReferenceInfo(None, topic),), "no columns of its own, and all partitions"
        opened.check_history(Position({1: 3}))


def test_a_topic_made_anew_is_another_one(kafka):
    topic = create_topic(kafka)
    with upstream(kafka, topic) as opened:
        first = opened.describe().topic_id
        opened.check_identity(first)
        delete_topic(kafka, topic)
        with pytest.raises(UpstreamChanged) as missing:
            opened.check_identity(first)
        assert missing.value.reason == "topic_missing"
        create_topic(kafka, name=topic)
        with pytest.raises(UpstreamChanged) as recreated:
            opened.check_identity(first)
        assert recreated.value.reason == "topic_recreated"
        assert first in recreated.value.message
        opened.check_identity(opened.describe().topic_id)


def test_ends_are_last_stable_offsets_and_count_markers(kafka):
    topic = create_topic(kafka)
    with upstream(kafka, topic) as opened:
        produce_in_transaction(kafka, topic, records(2))
        wait_until(lambda: opened.end_offsets() == Position({0: 3}), 10, "the commit marker to count")
        produce_in_transaction(kafka, topic, records(4), commit=False)
        wait_until(lambda: opened.end_offsets() == Position({0: 8}), 10, "the abort marker to count")
        with open_transaction(kafka, topic, records(5)) as (producer, _):
            produce(kafka, topic, records(1))
            assert opened.end_offsets() == Position({0: 8})
            assert positions(kafka, topic, committed=False) == {0: 14}
            assert opened.inspect(Start(mode="offset", asked={"0": 8})).start == Position({0: 8})
            with pytest.raises(BadStart):
                opened.resolve_start(Start(mode="offset", asked={"0": 9}))
            producer.commit_transaction(30)
        wait_until(lambda: opened.end_offsets() == Position({0: 15}), 10, "the end of the open transaction")


def test_a_compacted_gap_is_no_lost_history(kafka):
    topic = create_topic(
        kafka,
        config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100",
                "min.compaction.lag.ms": "0", "max.compaction.lag.ms": "1000"},
    )  # fmt: skip
    with upstream(kafka, topic) as opened:
        for n in range(20):
            produce(kafka, topic, [Record(b"%d" % n, key=b"k")])
        wait_until(lambda: _first_offset(kafka, topic) > 0, 60, "compaction")
        assert opened.begin_offsets() == Position()
        opened.check_history(Position())
        assert opened.resolve_start(Start()) == Position()


def _first_offset(kafka, topic: str) -> int:
    # Each look also rolls the active segment, which is never compacted.
    produce(kafka, topic, [Record(b"last", key=b"k")])
    return consume(kafka, topic)[0].offset()


def test_history_that_retention_took_is_named(kafka):
    topic = create_topic(kafka, 2)
    produce(kafka, topic, records(10, 0) + records(10, 1))
    delete_records(kafka, topic, {1: 7})
    with upstream(kafka, topic) as opened:
        assert opened.begin_offsets() == Position({1: 7})
        opened.check_history(Position({1: 7}))
        with pytest.raises(UpstreamChanged) as caught:
            opened.check_history(Position({0: 2, 1: 4}))
        assert caught.value.reason == "history_gone"
        for fact in ("partition 1", "read is 4", "begins at 7", "3 offsets"):
            assert fact in caught.value.message
        assert opened.resolve_start(Start()) == Position({1: 7})


def test_a_new_partition_that_does_not_begin_at_zero_is_lost_history(kafka):
    topic = create_topic(kafka)
    add_partitions(kafka, topic, 2)
    produce(kafka, topic, records(5, 1))
    delete_records(kafka, topic, {1: 5})
    with upstream(kafka, topic) as opened, pytest.raises(UpstreamChanged, match="partition 1"):
        opened.check_history(Position())


def test_starts(kafka):
    now = int(time.time() * 1000)
    topic = create_topic(kafka, 3)
    produce(kafka, topic, [Record(b"x", partition=0, timestamp=now - 60_000 + n * 10_000) for n in range(5)])
    produce(kafka, topic, records(2, 1, now - 100_000))
    delete_records(kafka, topic, {0: 1})
    with upstream(kafka, topic) as opened:
        assert opened.resolve_start(Start()) == Position({0: 1})
        asked = Start(mode="offset", asked={"0": 5, "1": 0})
        assert opened.resolve_start(asked) == Position({0: 5})
        assert opened.inspect(asked).start == Position({0: 5})
        for bad in ({"0": 0}, {"0": 6}, {"1": 3}, {"0": 1, "1": 0, "2": 0, "3": 0}):
            with pytest.raises(BadStart):
                opened.resolve_start(Start(mode="offset", asked=bad))
        third = Start(mode="timestamp", timestamp=now - 35_000)
        assert opened.resolve_start(third) == Position({0: 3, 1: 2})
        assert opened.resolve_start(Start(mode="timestamp", timestamp=1)) == Position({0: 1})
        assert opened.resolve_start(Start(mode="timestamp", timestamp=-5)) == Position({0: 5, 1: 2})
        ago = int(time.time() * 1000) - now + 45_000
        assert opened.resolve_start(Start(mode="timestamp", timestamp=-ago)) == Position({0: 2, 1: 2})
        with pytest.raises(BadStart):
            opened.resolve_start(Start(mode="timestamp", timestamp=now + 3_600_000))


def test_an_empty_topic_can_be_inspected(kafka):
    topic = create_topic(kafka, 2)
    with upstream(kafka, topic) as opened:
        found = opened.inspect(Start())
        assert found.info == opened.describe()
        assert found.start == Position()
        opened.check_readable()


def test_no_consumer_group_appears_on_the_broker(kafka):
    topic = create_topic(kafka, 2)
    produce(kafka, topic, records(3))
    client = admin(kafka)
    before = {group.group_id for group in client.list_consumer_groups().result(10).valid}
    with upstream(kafka, topic) as opened:
        opened.inspect(Start())
        opened.check_readable()
    after = {group.group_id for group in client.list_consumer_groups().result(10).valid}
    assert after <= before


def test_two_threads_may_ask_and_asking_is_cheap(kafka, capfd):
    topic = create_topic(kafka, 4)
    produce(kafka, topic, records(3))
    took: list[float] = []
    problems: list[BaseException] = []

    def ask(opened: KafkaUpstream, topic_id: str) -> None:
        try:
            for _ in range(30):
                begun = time.perf_counter()
                opened.check_identity(topic_id)
                took.append(time.perf_counter() - begun)
                assert opened.end_offsets() == Position({0: 3})
                opened.check_history(Position())
        except BaseException as problem:
            problems.append(problem)

    with upstream(kafka, topic) as opened:
        topic_id = opened.describe().topic_id
        threads = [threading.Thread(target=ask, args=(opened, topic_id)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not problems
    assert len(took) == 60
    assert statistics.median(took) < 0.1
    assert capfd.readouterr() == ("", "")
