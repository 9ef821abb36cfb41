"""A source's way to its load generator, which needs no connection: the incarnation tells when its clock began."""

from __future__ import annotations

from typing import Any

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.load_generator.reader import LoadGeneratorReader
from airflow_provider_mzshare.connectors.load_generator.records import GeneratedRecords
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.load_generator.upstream import LoadGeneratorUpstream, plan_of


class LoadGeneratorConnector:
    def __init__(self, spec: LoadGeneratorSpec, connection: Connection | None, incarnation: str | None) -> None:
        self._spec, self._incarnation = spec, incarnation

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> LoadGeneratorUpstream:
        return LoadGeneratorUpstream(self._spec, self._incarnation)

    def reader(self, spark: Any) -> LoadGeneratorReader:
        return LoadGeneratorReader(spark, plan_of(self._spec, self._incarnation or ""))

    def records(self) -> GeneratedRecords:
        return GeneratedRecords(plan_of(self._spec, self._incarnation or ""))
