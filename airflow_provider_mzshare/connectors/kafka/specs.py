"""What is stored of a Kafka source and of its tables."""

from __future__ import annotations

from typing import Literal

from airflow_provider_mzshare.core.specs import ExportDetails, Include, SourceSpec, Start


class KafkaSourceSpec(SourceSpec):
    kind: Literal["kafka"] = "kafka"
    connection: str
    topic: str
    start: Start = Start()


class KafkaExportDetails(ExportDetails):
    kind: Literal["kafka"] = "kafka"
    topic: str
    metadata_columns: tuple[Include, ...] = ()
