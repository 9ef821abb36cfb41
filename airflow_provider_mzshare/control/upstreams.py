"""Opens the upstream a source's spec names, through its connection. New kinds of sources are told apart here."""

from __future__ import annotations

from airflow_provider_mzshare.storage.connections import ConnectionStore
from airflow_provider_mzshare.storage.connectors.kafka.clients import Clients, Deadline
from airflow_provider_mzshare.storage.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.storage.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.storage.connectors.kafka.upstream import REQUEST_SECONDS, KafkaUpstream
from airflow_provider_mzshare.types.specs import KafkaSourceSpec


def open_upstream(
    connections: ConnectionStore, spec: KafkaSourceSpec, *, timeout: float = REQUEST_SECONDS
) -> KafkaUpstream:
    config = KafkaConfig.from_connection(connections.get(spec.connection))
    return KafkaUpstream(config, spec.topic, timeout=timeout)


def open_records(connections: ConnectionStore, spec: KafkaSourceSpec) -> RecordReader:
    """For a check that reads the source again, apart from Spark."""
    return RecordReader(KafkaConfig.from_connection(connections.get(spec.connection)), spec.topic)


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
