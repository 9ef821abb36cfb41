"""Sources of each kind find their way to their upstream, with or without a connection."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.connections import Connection, FixedConnections
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.control.upstreams import (
    connect,
    connection_name,
    connection_of,
    open_records,
    open_upstream,
)
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import BadConnection, UnknownConnection, UpstreamChanged

KAFKA = KafkaSourceSpec(connection="bus", topic="orders")
COUNTER = LoadGeneratorSpec(generator="counter", tick_interval_ms=1, up_to=10)
NONE = FixedConnections({})


def test_a_generator_needs_no_connection_and_a_topic_does() -> None:
    bus = Connection("bus", "kafka", "localhost", 9092)
    assert connection_of(NONE, COUNTER) is None
    assert connection_name(COUNTER) is None
    assert connection_of(FixedConnections({"bus": bus}), KAFKA) == bus
    with pytest.raises(UnknownConnection):
        connection_of(NONE, KAFKA)
    with pytest.raises(BadConnection, match="'orders' has no connection"):
        connect(None, KAFKA)


def test_a_generator_is_opened_again_as_the_one_that_was_made() -> None:
    with open_upstream(NONE, COUNTER) as made:
        incarnation = made.inspect(Start()).info.incarnation
    with open_upstream(NONE, COUNTER, incarnation) as opened:
        opened.check_identity(incarnation)
    with open_upstream(NONE, COUNTER) as another, pytest.raises(UpstreamChanged):
        another.check_identity(incarnation)
    with open_records(NONE, COUNTER, incarnation) as records:
        values = [row["row"] for batch in records.read(0, 2, 4) for row in batch.to_pylist()]
        assert values == [{"counter": 3}, {"counter": 4}]
        assert records.excuse() is None


def test_records_of_a_generator_that_was_never_made_cannot_be_read() -> None:
    with pytest.raises(UpstreamChanged, match="no incarnation"):
        open_records(NONE, COUNTER, "")
