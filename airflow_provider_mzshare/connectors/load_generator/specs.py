"""What is stored of a source that a load generator feeds, and of its tables."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airflow_provider_mzshare.core.specs import ColumnSpec, ExportDetails, SourceSpec

DATABASE = "mz_load_generators"
"""The database in a reference of three parts."""

Generator = Literal["counter", "auction", "key_value"]


class LoadGeneratorSpec(SourceSpec):
    """A source that makes its records up: the same for the same seed, as far as its clock has come."""

    kind: Literal["load_generator"] = "load_generator"
    generator: Generator
    seed: int = 0
    tick_interval_ms: int = Field(default=1_000, ge=1)
    """How often the generator makes records."""
    batch_size: int = Field(default=1, ge=1, le=1_000_000)
    """Records of each partition that it makes at once."""
    up_to: int | None = Field(default=None, ge=0, le=10**15)
    """``counter``, ``key_value``: so many records per partition and no more; ``auction``: bids."""
    keys: int = Field(default=100, ge=1, le=10**12)
    """``key_value``: of each partition."""
    value_size: int = Field(default=16, ge=1, le=1 << 20)
    """``key_value``: bytes of a value."""
    partitions: int = Field(default=1, ge=1, le=64)
    """Used by ``key_value`` only; the other generators have one partition per output."""


class LoadGeneratorExportDetails(ExportDetails):
    kind: Literal["load_generator"] = "load_generator"
    output: str
    partitions: tuple[int, ...]
    """Which of the source's partitions carry this output."""
    columns: tuple[ColumnSpec, ...]
    """All that the output had when the table was made, also those that were excluded."""
    keys: tuple[str, ...] = ()
