"""``FROM NUMBERED LINES (FOLDER '/data/lines')``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kind import ConnectorKind
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.specs import ExportDetails, SourceSpec, TableSpec


class LinesSpec(SourceSpec):
    kind: Literal["numbered_lines"] = "numbered_lines"
    folder: str
    batch: int = Field(default=1_000, ge=1)
    """So many lines of each file at once, and no more."""


class LinesDetails(ExportDetails):
    kind: Literal["numbered_lines"] = "numbered_lines"
    folder: str


class LinesKind(ConnectorKind[LinesSpec]):
    kind = "numbered_lines"
    title = "numbered lines"
    spec = LinesSpec
    details = LinesDetails
    connector = "numbered_lines.connector:LinesConnector"
    words = "NUMBERED LINES"
    options = (
        Option("FOLDER", "name", "a folder in single quotes", "folder", noun="a folder", required=True),
        Option("BATCH", "whole", field="batch"),
    )
    metadata = ("partition", "offset", "timestamp")
    executor_modules = ("numbered_lines.lines", "numbered_lines.datasource")

    def topic(self, spec: LinesSpec) -> str:
        return spec.folder

    def export(self, source: LinesSpec, table: TableSpec, reference: ReferenceInfo) -> LinesDetails:
        return LinesDetails(folder=source.folder)


KIND = LinesKind()
