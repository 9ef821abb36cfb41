"""A broker that goes away and comes back under an upstream that stays open, and upstreams that nobody closes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import TransientError, UpstreamUnreachable
from tests.support.kafka import create_topic, produce
from tests.support.waiting import wait_until


def test_an_outage_is_told_soon_each_time_and_ends_by_itself(jars, tmp_path):
    with EmbeddedKafka(tmp_path, jars=jars) as broker:
        topic = create_topic(broker)
        produce(broker, topic, [b"x"])
        connection = Connection("bus", "kafka", extra={"bootstrap.servers": broker.bootstrap})
        with KafkaUpstream(KafkaConfig.from_connection(connection), topic) as upstream:
            topic_id = upstream.describe().topic_id
            broker.kill()
            for _ in range(3):  # librdkafka tells of a broken connection once; later calls must know it too
                begun = time.monotonic()
                with pytest.raises(UpstreamUnreachable, match="cannot be reached"):
                    upstream.check_identity(topic_id)
                assert time.monotonic() - begun < 5
            broker.start()

            def is_back() -> bool:
                try:
                    upstream.check_identity(topic_id)
                except TransientError:
                    return False
                return True

            wait_until(is_back, 30, "the upstream to see the broker again")
            upstream.check_history(Position())
            assert upstream.end_offsets() == Position({0: 1})


COLLECTED_BY_LIBRDKAFKA = """
import gc, threading
from confluent_kafka import TopicCollection
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream

gc.disable()
collected = threading.Event()

def abandon():
    config = KafkaConfig.from_connection(Connection("bus", "kafka", "127.0.0.1", 1))
    cycle = [KafkaUpstream(config, "t")]
    cycle.append(cycle)
    asked = cycle[0]._clients.admin.describe_topics(TopicCollection(["t"]), request_timeout=0.3)["t"]
    asked.add_done_callback(lambda _: (gc.collect(), collected.set()))

abandon()
assert collected.wait(20)
print("alive")
"""


def test_an_upstream_nobody_closed_may_be_collected_in_any_thread():
    root = str(Path(__file__).parents[3])
    ran = subprocess.run(
        [sys.executable, "-c", COLLECTED_BY_LIBRDKAFKA], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "alive"), ran.stderr


def test_a_closed_upstream_says_so():
    upstream = KafkaUpstream(KafkaConfig.from_connection(Connection("bus", "kafka", "127.0.0.1", 1)), "t")
    upstream.close()
    upstream.close()
    with pytest.raises(UpstreamUnreachable, match="closed"):
        upstream.describe()
