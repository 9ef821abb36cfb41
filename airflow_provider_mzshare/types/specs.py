"""What a user asked for, with a version: the JSON kept in the catalog and carried by ticks."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_provider_mzshare.types.schema import SYSTEM_COLUMNS, Column, check_type

DAY_SECONDS = 86_400


class Spec(BaseModel):
    """Unknown fields are refused: a newer writer's spec must not be read as if it said less."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(Spec):
    """Where a source begins. ``offsets`` is the resolved answer, written once at creation."""

    mode: Literal["earliest", "offset", "timestamp"] = "earliest"
    asked: dict[str, int] = Field(default_factory=dict)
    """mode ``offset``: offsets as the user gave them, per partition."""
    timestamp: int | None = None
    """mode ``timestamp``: milliseconds since 1970."""


class KafkaSourceSpec(Spec):
    version: Literal[1] = 1
    kind: Literal["kafka"] = "kafka"
    connection: str
    topic: str
    start: Start = Start()


class ColumnSpec(Spec):
    name: str
    type: str

    @field_validator("type")
    @classmethod
    def _known_type(cls, value: str) -> str:
        check_type(value)
        return value


class Include(Spec):
    """A metadata column: the record's partition, offset, timestamp or key."""

    what: Literal["partition", "offset", "timestamp", "key"]
    name: str


Format = Literal["json", "text", "bytes"]

_INCLUDE_TYPES = {"partition": "integer", "offset": "bigint", "timestamp": "timestamptz"}
_PLAIN_COLUMN = {"json": "text", "text": "text", "bytes": "bytea"}


class TableSpec(Spec):
    """A table from a source.

    ``columns`` is empty for text, bytes and untyped JSON, which have the one column ``data``.
    """

    version: Literal[1] = 1
    reference: str
    format: Format
    columns: tuple[ColumnSpec, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: Literal["none"] = "none"
    on_decode_error: Literal["record", "stop"] = "record"
    retain_history_seconds: int = Field(default=DAY_SECONDS, ge=0)
    snapshot: bool = True
    """False: nothing of the source's history belongs to the table; it begins at what comes next."""

    def value_columns(self) -> tuple[Column, ...]:
        if self.columns:
            return tuple(Column(c.name, c.type) for c in self.columns)
        return (Column("data", _PLAIN_COLUMN[self.format]),)

    def include_columns(self) -> tuple[Column, ...]:
        key = "bytea" if self.format == "bytes" else "text"
        return tuple(Column(i.name, _INCLUDE_TYPES.get(i.what, key)) for i in self.include)

    def user_columns(self) -> tuple[Column, ...]:
        return self.value_columns() + self.include_columns()

    def all_columns(self) -> tuple[Column, ...]:
        return self.user_columns() + tuple(Column(*c) for c in SYSTEM_COLUMNS)


class SourceSettings(Spec):
    """What may be changed while the ingestion app runs."""

    trigger_interval_ms: int = Field(default=1_000, ge=50)
    max_records_per_tick: int = Field(default=500_000, ge=1)
    idle_tick_seconds: float = Field(default=10.0, gt=0)
    backfill_rate: int | None = Field(default=None, ge=0)
    """Records per second that a backfill of the source may read; None is no limit, 0 a pause."""
    cutover_wait_ms: int | None = Field(default=None, ge=0)
    """How long a tick may wait for a backfill that is one tick behind; None is a quarter of the trigger interval."""
