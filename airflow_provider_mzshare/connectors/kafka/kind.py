"""Kafka as a kind of source: ``FROM KAFKA CONNECTION c (TOPIC 't')``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kafka.specs import KafkaExportDetails, KafkaSourceSpec
from airflow_provider_mzshare.connectors.kind import Clause, ConnectorKind, Written
from airflow_provider_mzshare.core.options import Option, OptionValue
from airflow_provider_mzshare.core.specs import Start, TableSpec

TOPIC = Option(
    "TOPIC", "name", "a topic in single quotes", "topic", noun="a topic", required=True, about="the topic; required"
)
START_OFFSET = Option(
    "START OFFSET", "wholes", "an offset, a whole number", argument="start_offsets",
    about="the first offset to read of partition 0, 1, 2, …; a partition not listed begins at its earliest record",
)  # fmt: skip
START_TIMESTAMP = Option(
    "START TIMESTAMP", "signed", "milliseconds, a whole number", excludes="START OFFSET",
    about="begin at the first record at or after this time, in milliseconds since 1970; negative: back from now",
)  # fmt: skip


class KafkaKind(ConnectorKind[KafkaSourceSpec]):
    kind = "kafka"
    title = "Kafka"
    spec = KafkaSourceSpec
    details = KafkaExportDetails
    connector = "airflow_provider_mzshare.connectors.kafka.connector:KafkaConnector"
    words = "KAFKA"
    takes_connection = True
    options = (TOPIC, START_OFFSET, START_TIMESTAMP)
    relation = "records"
    conn_types = ("kafka", "generic")
    packages = ("confluent-kafka",)
    spark_settings: ClassVar[Mapping[str, str]] = {
        # Running tasks say how far they are. Kafka's older reader, Spark's default for batches, never does.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # A reader per partition is kept from tick to tick: a new one takes as long as many small reads. Only so many,
        # as each holds two connections to the brokers and what it has fetched ahead.
        "spark.kafka.consumer.cache.capacity": "512",
    }

    def read(self, written: Written) -> KafkaSourceSpec:
        return super().read(written).model_copy(update={"start": _start(written)})

    def write(self, spec: KafkaSourceSpec) -> Written:
        options: dict[str, OptionValue] = {TOPIC.words: spec.topic}
        if spec.start.mode == "offset":
            last = max((int(partition) for partition in spec.start.asked), default=0)
            options[START_OFFSET.words] = tuple(spec.start.asked.get(str(number), 0) for number in range(last + 1))
        elif spec.start.timestamp is not None:
            options[START_TIMESTAMP.words] = spec.start.timestamp
        return Written(connection=spec.connection, options=options)

    def topic(self, spec: KafkaSourceSpec) -> str:
        return spec.topic

    def start(self, spec: KafkaSourceSpec) -> Start:
        return spec.start

    def export(self, source: KafkaSourceSpec, table: TableSpec, reference: ReferenceInfo) -> KafkaExportDetails:
        return KafkaExportDetails(topic=source.topic, metadata_columns=table.include)

    def misplaced(self, variant: str | None, given: Collection[Clause]) -> Iterator[tuple[Clause, str]]:
        yield "FOR", "a KAFKA source has one output"
        if "FORMAT" not in given:
            needy: tuple[Clause, ...] = ("INCLUDE", "ENVELOPE", "a column list")
            yield from ((clause, "an old-style KAFKA source needs FORMAT") for clause in needy)


def _start(written: Written) -> Start:
    offsets, timestamp = written.options.get(START_OFFSET.words), written.options.get(START_TIMESTAMP.words)
    if isinstance(offsets, tuple):
        return Start(mode="offset", asked={str(number): int(offset) for number, offset in enumerate([*offsets])})
    return Start(mode="timestamp", timestamp=timestamp) if isinstance(timestamp, int) else Start()


KIND = KafkaKind()
