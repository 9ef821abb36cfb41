"""What goes wrong before a source exists: each has its own sentence, in time, on a real broker."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AclOperation

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import (
    BadConnection,
    MzShareError,
    NotAuthorized,
    ReferenceMissing,
    UpstreamUnreachable,
)
from tests.support.kafka import allow, create_topic, produce, sasl_config

LIMIT = 15.0


def refusal(extra: dict[str, str], topic: str = "orders") -> MzShareError:
    """The error of the checks of a CREATE SOURCE, which must come in time and show no secret."""
    begun = time.monotonic()
    with pytest.raises(MzShareError) as caught:
        inspect(extra, topic)
    assert time.monotonic() - begun < LIMIT
    assert "secret" not in caught.value.line
    return caught.value


def inspect(extra: dict[str, str], topic: str) -> Position:
    with KafkaUpstream(KafkaConfig.from_connection(Connection("bus", "kafka", extra=extra)), topic) as upstream:
        return upstream.inspect(Start()).start


@contextmanager
def silent_listener() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in kept:
                connection.close()


def test_a_topic_that_is_missing_with_what_it_may_have_been(kafka):
    topic = create_topic(kafka)
    error = refusal({"bootstrap.servers": kafka.bootstrap}, topic + "s")
    assert isinstance(error, ReferenceMissing)
    assert f"'{topic}s'" in error.message
    assert f"'{topic}'" in error.hint
    assert isinstance(refusal({"bootstrap.servers": kafka.bootstrap}, "no topic at all!"), ReferenceMissing)


def test_nobody_listens(capfd):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = refusal({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert isinstance(error, UpstreamUnreachable)
    assert "Connection refused" in error.message
    assert f"127.0.0.1:{port}" in error.message
    assert "'bus'" in error.hint
    assert capfd.readouterr() == ("", "")


def test_a_host_that_does_not_resolve():
    error = refusal({"bootstrap.servers": "no-such-host.invalid:9092"})
    assert isinstance(error, UpstreamUnreachable)
    assert "no-such-host.invalid" in error.message
    assert "resolve" in error.message


def test_somebody_listens_and_never_answers():
    with silent_listener() as address:
        error = refusal({"bootstrap.servers": address})
    assert isinstance(error, UpstreamUnreachable)
    assert address in error.message


def test_one_dead_address_of_two_does_no_harm(kafka):
    topic = create_topic(kafka)
    assert inspect({"bootstrap.servers": f"127.0.0.1:1,{kafka.bootstrap}"}, topic) == Position()


def test_another_protocol_than_the_listeners(kafka):
    plain_to_sasl = refusal({"bootstrap.servers": kafka.sasl_bootstrap})
    assert isinstance(plain_to_sasl, UpstreamUnreachable)
    tls_to_plain = refusal({"bootstrap.servers": kafka.bootstrap, "security.protocol": "SSL"})
    assert isinstance(tls_to_plain, UpstreamUnreachable)
    assert "SSL" in tls_to_plain.message


def test_a_wrong_password(kafka):
    error = refusal(sasl_config(kafka, "alice", "wrong-secret"))
    assert isinstance(error, NotAuthorized)
    assert "refused the credentials of connection 'bus'" in error.message
    assert "Invalid username or password" in error.message


def test_a_mechanism_the_broker_does_not_offer(kafka):
    error = refusal(sasl_config(kafka, "alice") | {"sasl.mechanism": "SCRAM-SHA-256"})
    assert isinstance(error, NotAuthorized)
    assert "PLAIN" in error.message


def test_rights_are_told_apart_and_no_group_right_is_needed(kafka):
    topic = create_topic(kafka)
    produce(kafka, topic, [b"x"])
    none = refusal(sasl_config(kafka, "bob"), topic)
    assert isinstance(none, NotAuthorized)
    assert none.message == f"user 'bob' has no DESCRIBE right on topic '{topic}'"

    allow(kafka, "bob", topic, [AclOperation.DESCRIBE])
    describe_only = refusal(sasl_config(kafka, "bob"), topic)
    assert isinstance(describe_only, NotAuthorized)
    assert describe_only.message == f"user 'bob' has no READ right on topic '{topic}'"

    allow(kafka, "bob", topic, [AclOperation.READ])
    assert inspect(sasl_config(kafka, "bob"), topic) == Position()


def test_whether_a_topic_compacts_takes_a_right_of_its_own(kafka):
    topic = create_topic(kafka)
    allow(kafka, "bob", topic)
    connection = Connection("bus", "kafka", extra=sasl_config(kafka, "bob"))
    with KafkaUpstream(KafkaConfig.from_connection(connection), topic) as upstream:
        with pytest.raises(NotAuthorized) as refused:
            upstream.compaction()
        assert refused.value.message == f"user 'bob' has no DESCRIBE_CONFIGS right on topic '{topic}'"
        assert "an ACL that allows DESCRIBE_CONFIGS" in refused.value.hint
        allow(kafka, "bob", topic, [AclOperation.DESCRIBE_CONFIGS])
        assert upstream.compaction() is None


def test_a_hint_names_only_topics_the_user_may_see(kafka):
    topic = create_topic(kafka)
    allow(kafka, "alice", topic + "s")
    error = refusal(sasl_config(kafka, "alice"), topic + "s")
    assert isinstance(error, ReferenceMissing)
    assert f"'{topic}'" not in error.line


def test_a_file_the_client_cannot_read(tmp_path):
    broken = tmp_path / "ca.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----\n")
    extra = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", "ssl.ca.location": str(broken)}
    error = refusal(extra)
    assert isinstance(error, BadConnection)
    assert "ssl.ca.location" in error.message
