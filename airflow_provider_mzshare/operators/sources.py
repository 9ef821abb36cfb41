"""Operators about sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Context

from airflow_provider_mzshare.hooks.definitions import DEFAULT_KIND, check_upstream
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator


class CreateSourceOperator(MzShareOperator):
    """Define a source on a Kafka topic, or on any other upstream; nothing is read until it has a table and is started.

    The same definition again changes nothing; another one under the same name fails and is not retried.

    :param source: the source's name, ``[schema.]name``. (templated)
    :param kafka_conn_id: the Airflow connection to the brokers. (templated)
    :param topic: the topic to read. (templated)
    :param start_offsets: begin at these offsets, in the order of partitions; default: the earliest records. (templated)
    :param start_timestamp: begin at this time, milliseconds since 1970. (templated)
    :param options: settings of the source, as ``{"trigger_interval": "500ms", "backfill_rate": 1000}``. (templated)
    :param kind: of the source, if it is not Kafka: ``load_generator``.
    :param conn_id: the Airflow connection to an upstream of that kind, if it needs one. (templated)
    :param upstream: what that kind needs to know, as ``{"generator": "auction", "up_to": 1000}``. (templated)
    """

    template_fields: Sequence[str] = (
        "source", "kafka_conn_id", "topic", "start_offsets", "start_timestamp", "options", "conn_id", "upstream",
        *MzShareOperator.template_fields,
    )  # fmt: skip
    operator_extra_links = (StatusLink(),)

    def __init__(
        self,
        *,
        source: str,
        kafka_conn_id: str | None = None,
        topic: str | None = None,
        start_offsets: Sequence[int] | None = None,
        start_timestamp: int | str | None = None,
        options: Mapping[str, Any] | None = None,
        kind: str = DEFAULT_KIND,
        conn_id: str | None = None,
        upstream: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source, self.kafka_conn_id, self.topic = source, kafka_conn_id, topic
        self.start_offsets, self.start_timestamp, self.options = start_offsets, start_timestamp, options
        self.kind, self.conn_id, self.upstream = kind, conn_id, upstream
        if isinstance(upstream, Mapping | None):  # otherwise it is the result of another task, and not known yet
            check_upstream(kind, kafka_conn_id or conn_id, self._upstream())

    def perform(self, context: Context) -> str | None:
        """Returns the source's full name."""
        result = self.hook.create_source(
            self.source,
            kind=self.kind,
            connection=self.kafka_conn_id or self.conn_id,
            options=self.options,
            **self._upstream(),
        )
        self.log.info(result.message)
        return result.name

    def _upstream(self) -> dict[str, Any]:
        """The options that are arguments of their own, together with ``upstream``."""
        own = {"topic": self.topic, "start_offsets": self.start_offsets, "start_timestamp": self.start_timestamp}
        return {**{name: value for name, value in own.items() if value is not None}, **(self.upstream or {})}


class DropSourceOperator(MzShareOperator):
    """Drop a source and stop its apps. One that does not exist is no error.

    :param source: the source's name. (templated)
    :param cascade: drop its tables as well; without it, a source that has tables is not dropped.
    """

    template_fields: Sequence[str] = ("source", *MzShareOperator.template_fields)

    def __init__(self, *, source: str, cascade: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source, self.cascade = source, cascade

    def perform(self, context: Context) -> str:
        result = self.hook.drop_source(self.source, cascade=self.cascade)
        self.log.info(result.message)
        return result.message
