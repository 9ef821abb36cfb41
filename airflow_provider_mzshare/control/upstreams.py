"""Opens the upstream a source's spec names, through its connection. New kinds of sources are told apart here alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from airflow_provider_mzshare.connectors.base import Reader, Records, Upstream
from airflow_provider_mzshare.connectors.connections import Connection, ConnectionStore
from airflow_provider_mzshare.connectors.kafka.clients import Clients, Deadline
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.reader import KafkaReader
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.kafka.upstream import REQUEST_SECONDS, KafkaUpstream
from airflow_provider_mzshare.connectors.load_generator.reader import LoadGeneratorReader
from airflow_provider_mzshare.connectors.load_generator.records import GeneratedRecords
from airflow_provider_mzshare.connectors.load_generator.upstream import LoadGeneratorUpstream, plan_of
from airflow_provider_mzshare.core.specs import KafkaSourceSpec, LoadGeneratorSpec, SourceSpec
from airflow_provider_mzshare.errors import BadConnection


class Connector(Protocol):
    """One source's way to its upstream."""

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> Upstream: ...

    def reader(self, spark: Any) -> Reader: ...

    def records(self) -> Records:
        """For a check that reads the source again, apart from Spark."""
        ...


class _Kafka:
    def __init__(self, spec: KafkaSourceSpec, connection: Connection | None, incarnation: str | None) -> None:
        if connection is None:
            raise BadConnection(f"the source of topic {spec.topic!r} has no connection")
        self._config, self._topic = KafkaConfig.from_connection(connection), spec.topic

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> KafkaUpstream:
        return KafkaUpstream(self._config, self._topic, timeout=timeout)

    def reader(self, spark: Any) -> KafkaReader:
        return KafkaReader(spark, self._config, self._topic)

    def records(self) -> RecordReader:
        return RecordReader(self._config, self._topic)


class _LoadGenerator:
    def __init__(self, spec: LoadGeneratorSpec, connection: Connection | None, incarnation: str | None) -> None:
        self._spec, self._incarnation = spec, incarnation

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> LoadGeneratorUpstream:
        return LoadGeneratorUpstream(self._spec, self._incarnation)

    def reader(self, spark: Any) -> LoadGeneratorReader:
        return LoadGeneratorReader(spark, plan_of(self._spec, self._incarnation or ""))

    def records(self) -> GeneratedRecords:
        return GeneratedRecords(plan_of(self._spec, self._incarnation or ""))


_KINDS: Mapping[str, Callable[[Any, Connection | None, str | None], Connector]] = {
    "kafka": _Kafka,
    "load_generator": _LoadGenerator,
}


def connect(connection: Connection | None, spec: SourceSpec, incarnation: str | None = None) -> Connector:
    """:param incarnation: of a source that is made already: for some kinds the spec alone does not say who they are."""
    return _KINDS[spec.kind](spec, connection, incarnation)


def connection_of(connections: ConnectionStore, spec: SourceSpec) -> Connection | None:
    """None for a kind that needs none."""
    name = connection_name(spec)
    return None if name is None else connections.get(name)


def connection_name(spec: SourceSpec) -> str | None:
    return spec.connection if isinstance(spec, KafkaSourceSpec) else None


def open_upstream(
    connections: ConnectionStore,
    spec: SourceSpec,
    incarnation: str | None = None,
    *,
    timeout: float = REQUEST_SECONDS,
) -> Upstream:
    """:param incarnation: of the source, if it is made already; leave it out only to make a new one."""
    return connect(connection_of(connections, spec), spec, incarnation).upstream(timeout=timeout)


def open_records(connections: ConnectionStore, spec: SourceSpec, incarnation: str) -> Records:
    return connect(connection_of(connections, spec), spec, incarnation).records()


def reach(connections: ConnectionStore, name: str) -> str:
    """Log in through a connection and say what answered."""
    config = KafkaConfig.from_connection(connections.get(name))
    clients = Clients(config, "")
    try:
        deadline = Deadline(REQUEST_SECONDS)
        cluster = clients.settle([clients.admin.describe_cluster(request_timeout=deadline.request)], deadline)[0]
        return f"Kafka at {config.bootstrap} answers: {len(cluster.nodes)} broker(s)"
    finally:
        clients.close()
