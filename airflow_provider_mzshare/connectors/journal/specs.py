"""What is stored of a source that is pushed into, and of its tables."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airflow_provider_mzshare.core.specs import ExportDetails, SourceSpec

REFERENCE = "records"
"""All that such a source exports."""


class JournalSpec(SourceSpec):
    """A source that somebody pushes records into. They are kept in a journal of its own."""

    kind: Literal["journal"] = "journal"
    partitions: int = Field(default=1, ge=1, le=64)
    """How many can push at the same time: each has a partition to itself. Between partitions there is no order."""


class JournalExportDetails(ExportDetails):
    kind: Literal["journal"] = "journal"
