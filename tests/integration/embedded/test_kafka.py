"""The embedded broker: rights, transactions, meters, and data that survive a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import JarProblem, ServerFailed
from tests.support.kafka import (
    Place,
    Record,
    add_partitions,
    allow,
    consume,
    create_topic,
    delete_records,
    delete_topic,
    open_transaction,
    positions,
    produce,
    produce_in_transaction,
    sasl_config,
    topic_id,
)
from tests.support.waiting import wait_until


def test_records_land_where_the_producer_says(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    places = produce(kafka, topic, [Record(b"a", partition=1), Record(None, b"k", 0), Record(b"b", partition=1)])
    assert places == [Place(1, 0), Place(0, 0), Place(1, 1)]
    read = {(message.partition(), message.offset()): message.value() for message in consume(kafka, topic)}
    assert read == {(1, 0): b"a", (0, 0): None, (1, 1): b"b"}
    add_partitions(kafka, topic, 3)
    assert positions(kafka, topic) == {0: 1, 1: 2, 2: 0}


def test_a_topic_made_again_has_another_id(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    before = topic_id(kafka, topic)
    delete_topic(kafka, topic)
    create_topic(kafka, name=topic)
    assert topic_id(kafka, topic) != before


def test_transactions_are_seen_when_committed(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    produce_in_transaction(kafka, topic, [b"1", b"2"])
    produce_in_transaction(kafka, topic, [b"lost"], commit=False)
    with open_transaction(kafka, topic, [b"open"]):
        # Two records and a marker, one record and a marker; the open one lies behind the last stable offset.
        assert positions(kafka, topic) == {0: 5}
        assert positions(kafka, topic, committed=False) == {0: 6}
        assert [message.value() for message in consume(kafka, topic)] == [b"1", b"2"]


def test_history_can_be_removed(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, [b"1", b"2", b"3"])
    delete_records(kafka, topic, {0: 2})
    assert positions(kafka, topic, OffsetSpec.earliest()) == {0: 2}
    assert [message.value() for message in consume(kafka, topic)] == [b"3"]


def test_compaction_leaves_gaps_within_seconds(kafka: EmbeddedKafka) -> None:
    settings = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    topic = create_topic(kafka, config=settings)
    produce(kafka, topic, [Record(b"old", b"k"), Record(b"other", b"o")])

    def compacted() -> bool:
        produce(kafka, topic, [Record(b"new", b"k")])  # A new segment: the active one is never compacted.
        return b"old" not in [message.value() for message in consume(kafka, topic)]

    wait_until(compacted, 30, "compaction", every=0.3)
    assert b"other" in [message.value() for message in consume(kafka, topic)]


def test_sasl_users_get_only_what_acls_give_them(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    allow(kafka, "alice", topic)
    seen = AdminClient(sasl_config(kafka, "alice")).list_topics(timeout=10).topics
    assert topic in seen
    assert topic not in AdminClient(sasl_config(kafka, "bob")).list_topics(timeout=10).topics
    stranger = AdminClient({**sasl_config(kafka, "bob", "wrong"), "log_level": 0})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=3)


def test_the_broker_counts_the_bytes_of_a_topic(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 4)
    assert (kafka.bytes_in(topic), kafka.bytes_out(topic)) == (0, 0)
    produce(kafka, topic, [b"x" * 100] * 1000)
    assert 100_000 < kafka.bytes_in(topic) < 150_000
    consume(kafka, topic)
    once = kafka.bytes_out(topic)
    assert 100_000 < once < 150_000
    consume(kafka, topic)
    assert kafka.bytes_out(topic) == pytest.approx(2 * once, rel=0.1)


def test_data_survive_restart_and_kill_on_the_same_ports(jars: Path, tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path / "broker", jars=jars) as broker:
        address, topic = broker.bootstrap, create_topic(broker)
        produce(broker, topic, [b"1"])
        broker.restart()
        produce(broker, topic, [b"2"])
        broker.kill()
        assert not broker.running
        broker.start()
        assert broker.bootstrap == address
        assert [message.value() for message in consume(broker, topic)] == [b"1", b"2"]
        with pytest.raises(ServerFailed, match="runs already"):
            broker.start()
    assert not _processes_naming(tmp_path)
    assert (tmp_path / "broker" / "server.properties").stat().st_mode & 0o077 == 0


def test_nothing_is_left_when_the_owner_is_killed(jars: Path, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path;"
        "from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka;"
        "EmbeddedKafka(Path(sys.argv[1]), jars=Path(sys.argv[2])).start();"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", script, tmp_path, jars], timeout=90, check=False)
    assert ran.returncode == -9
    wait_until(lambda: not _processes_naming(tmp_path), 20, "the broker ends after its owner")


def test_a_setting_the_broker_refuses_is_reported_in_its_words(jars: Path, tmp_path: Path) -> None:
    broker = EmbeddedKafka(tmp_path, jars=jars, settings={"num.io.threads": "none"})
    with pytest.raises(ServerFailed, match=r"num\.io\.threads"):
        broker.start()
    assert not broker.running


def test_missing_jars_are_named(tmp_path: Path) -> None:
    with pytest.raises(JarProblem, match="is missing") as caught:
        EmbeddedKafka(tmp_path / "broker", jars=tmp_path).start()
    assert caught.value.hint == "mzshare jars"


def _processes_naming(folder: Path) -> list[int]:
    running = psutil.process_iter(["cmdline"])
    return [process.pid for process in running if str(folder) in " ".join(process.info["cmdline"] or [])]
