"""What a user asked for, with a version: the JSON kept in the catalog and carried by ticks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from airflow_provider_mzshare.core.registry import load
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE, check_type

DAY_SECONDS = 86_400
READ_DETAILS = "airflow_provider_mzshare.connectors.registry:read_details"


class Spec(BaseModel):
    """Unknown fields are refused: the spec of a newer version must not be read with parts left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(Spec):
    """Where a source begins. ``offsets`` is the resolved answer, written once at creation."""

    mode: Literal["earliest", "offset", "timestamp"] = "earliest"
    asked: dict[str, int] = Field(default_factory=dict)
    """mode ``offset``: offsets as the user gave them, per partition."""
    timestamp: int | None = None
    """mode ``timestamp``: milliseconds since 1970."""


class LegacySpec(Spec):
    """What an old-style CREATE SOURCE says of its outputs. A source without it has only tables.

    The outputs themselves are tables of the source like any other: migrating moves definitions, not data.
    """

    shape: Literal["single", "all_tables", "schemas", "tables"]
    """``single``: the rows are read under the source's own name. The others: how subsources were asked for."""
    schemas: tuple[str, ...] = ()
    """shape ``schemas``."""
    tables: tuple[tuple[str, str], ...] = ()
    """shape ``tables``: pairs of a reference and the subsource's name as it was written; both are SQL."""
    progress: str | None = None
    """``EXPOSE PROGRESS AS``, as SQL; else the progress is called ``<source>_progress``."""
    text_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()
    """Options of single columns that stand on the source, ``reference.column``."""


class SourceSpec(Spec):
    """What the spec of every kind of source has. The rest is the kind's own: ``ConnectorKind.spec``."""

    version: Literal[1] = 1
    kind: str
    legacy: LegacySpec | None = None

    @model_serializer(mode="wrap")
    def _legacy_last(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Behind the kind's own fields, where it stands in every catalog."""
        fields: dict[str, Any] = dump(self)
        if "legacy" in fields:
            fields["legacy"] = fields.pop("legacy")
        return fields


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


class ExportDetails(Spec):
    """What the source needs to know to fill a table, resolved when it was made: ``ConnectorKind.details``."""

    version: Literal[1] = 1
    kind: str


def _details_by_kind(value: Any) -> Any:
    """The details as their kind of source reads them. Connectors are a layer above, so they are imported by name."""
    if isinstance(value, Mapping):
        return load(READ_DETAILS)(value)
    return value


AnyExportDetails = Annotated[SerializeAsAny[ExportDetails], BeforeValidator(_details_by_kind)]


HANDLING = ("on_decode_error", "retain_history_seconds")
"""Fields of a table's spec that do not change its rows: their newest values count for every tick."""


class TableSpec(Spec):
    """A table from a source.

    ``columns`` is empty where the record as a whole is the one column ``data``. Where the upstream has columns of its
    own they are these, without the excluded ones.
    """

    version: Literal[1] = 1
    reference: str
    namespace: str | None = None
    """The schema of the reference, for upstreams that have any; Kafka has none."""
    format: str
    """The name of a format, to be looked up in the registry of formats."""
    columns: tuple[ColumnSpec, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: str = DEFAULT_ENVELOPE
    """The name of an envelope, to be looked up in the registry of envelopes."""
    on_decode_error: Literal["record", "stop"] = "record"
    retain_history_seconds: int = Field(default=DAY_SECONDS, ge=0)
    snapshot: bool = True
    """False: the table has no history of the source; it begins with the next tick."""
    text_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()
    details: AnyExportDetails | None = None
    """None for tables from before these were kept."""

    def handled_as(self, newest: TableSpec) -> TableSpec:
        """The columns of this version, with the newest version's handling of rows and of records that do not decode.

        A tick that could be written is the same with both. For one that could not, the user's newest choice counts.
        """
        return self.model_copy(update={name: getattr(newest, name) for name in HANDLING})


class SourceSettings(Spec):
    """What may be changed while the ingestion app runs."""

    trigger_interval_ms: int = Field(default=1_000, ge=50)
    max_records_per_tick: int = Field(default=500_000, ge=1)
    idle_tick_seconds: float = Field(default=10.0, gt=0)
    backfill_rate: int | None = Field(default=None, ge=0)
    """Records per second that a backfill of the source may read; None: no limit, 0: paused."""
    cutover_wait_ms: int | None = Field(default=None, ge=0)
    """How long a tick may wait for a backfill that is one tick behind; None is a quarter of the trigger interval."""
