"""Journals as a kind of source: ``FROM JOURNAL (PARTITIONS 4)``."""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_mzshare.connectors.journal.specs import JournalExportDetails, JournalSpec
from airflow_provider_mzshare.connectors.kind import CHUNK_SETTINGS, SEGMENT_MODULES, ConnectorKind
from airflow_provider_mzshare.core.options import Option

_FOLDER = "airflow_provider_mzshare.connectors.journal"


class JournalKind(ConnectorKind[JournalSpec]):
    kind = "journal"
    title = "journal"
    spec = JournalSpec
    details = JournalExportDetails
    connector = f"{_FOLDER}.connector:JournalConnector"
    words = "JOURNAL"
    options = (
        Option(
            "PARTITIONS",
            "whole",
            field="partitions",
            about="how many can push at the same time; records keep their order within a partition; at most 64",
        ),
    )
    is_journal = True
    # Records travel in chunks: Spark would take each of them apart and put it together again.
    spark_settings = CHUNK_SETTINGS
    executor_modules: ClassVar[tuple[str, ...]] = (
        *SEGMENT_MODULES,
        *(f"{_FOLDER}.{name}" for name in ("batches", "datasource")),
    )

    def pushers(self, spec: JournalSpec) -> int:
        return spec.partitions


KIND = JournalKind()
