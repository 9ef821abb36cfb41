"""A broker that goes away and comes back under an upstream that stays open."""

from __future__ import annotations

import time

import pytest

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import TransientError, UpstreamUnreachable
from airflow_provider_mzshare.storage.connections import Connection
from airflow_provider_mzshare.storage.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.storage.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.types.positions import Position
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
