"""A source's way to its journal, which is in the warehouse and the catalog: the incarnation is the journal's id."""

from __future__ import annotations

from typing import Any

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS, Journals
from airflow_provider_mzshare.connectors.journal.ranges import Ranges
from airflow_provider_mzshare.connectors.journal.reader import JournalReader
from airflow_provider_mzshare.connectors.journal.records import JournalRecords
from airflow_provider_mzshare.connectors.journal.specs import JournalSpec
from airflow_provider_mzshare.connectors.journal.upstream import JournalUpstream
from airflow_provider_mzshare.core.ids import JournalId, new_journal_id
from airflow_provider_mzshare.core.journal.stores import JournalStore


class JournalConnector:
    """:param incarnation: of a source that is made already; else it begins a journal that nobody has written to."""

    def __init__(self, spec: JournalSpec, incarnation: str | None, journals: Journals) -> None:
        self._spec, self._journals = spec, journals
        self._store: JournalStore = journals.open(JournalId(incarnation) if incarnation else new_journal_id())

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> JournalUpstream:
        return JournalUpstream(self._spec, self._store)

    def reader(self, spark: Any) -> JournalReader:
        return JournalReader(spark, self._store, self._ranges())

    def records(self) -> JournalRecords:
        return JournalRecords(self._ranges())

    def _ranges(self) -> Ranges:
        return Ranges(self._store, self._journals.warehouse)
