"""A Kafka source's way to its topic, through its connection."""

from __future__ import annotations

from typing import Any

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.clients import Clients, Deadline
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.reader import KafkaReader
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.errors import BadConnection


class KafkaConnector:
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

    @staticmethod
    def reach(connection: Connection) -> str:
        config = KafkaConfig.from_connection(connection)
        clients = Clients(config, "")
        try:
            deadline = Deadline(REQUEST_SECONDS)
            cluster = clients.settle([clients.admin.describe_cluster(request_timeout=deadline.request)], deadline)[0]
            return f"Kafka at {config.bootstrap} answers: {len(cluster.nodes)} broker(s)"
        finally:
            clients.close()
