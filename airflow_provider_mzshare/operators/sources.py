"""Operators about sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Context

from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator


class CreateSourceOperator(MzShareOperator):
    """Define a source on a Kafka topic; nothing is read until it has a table and is started.

    The same definition again changes nothing; another one under the same name fails and is not retried.

    :param source: the source's name, ``[schema.]name``. (templated)
    :param kafka_conn_id: the Airflow connection to the brokers. (templated)
    :param topic: the topic to read. (templated)
    :param start_offsets: begin at these offsets, in the order of partitions; default: the earliest records. (templated)
    :param start_timestamp: begin at this time, milliseconds since 1970. (templated)
    :param options: settings of the source, as ``{"trigger_interval": "500ms", "backfill_rate": 1000}``. (templated)
    """

    template_fields: Sequence[str] = (
        "source", "kafka_conn_id", "topic", "start_offsets", "start_timestamp", "options",
        *MzShareOperator.template_fields,
    )  # fmt: skip
    operator_extra_links = (StatusLink(),)

    def __init__(
        self,
        *,
        source: str,
        kafka_conn_id: str,
        topic: str,
        start_offsets: Sequence[int] | None = None,
        start_timestamp: int | str | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source, self.kafka_conn_id, self.topic = source, kafka_conn_id, topic
        self.start_offsets, self.start_timestamp, self.options = start_offsets, start_timestamp, options

    def perform(self, context: Context) -> str | None:
        """Returns the source's full name."""
        result = self.hook.create_source(
            self.source,
            connection=self.kafka_conn_id,
            topic=self.topic,
            start_offsets=self.start_offsets,
            start_timestamp=self.start_timestamp,
            options=self.options,
        )
        self.log.info(result.message)
        return result.name


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
