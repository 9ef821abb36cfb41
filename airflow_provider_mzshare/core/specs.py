"""What a user asked for, with a version: the JSON kept in the catalog and carried by ticks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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

from airflow_provider_mzshare.core.options import Option, options_of
from airflow_provider_mzshare.core.registry import load
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE, check_type

DAY_SECONDS = 86_400
READ_DETAILS = "airflow_provider_mzshare.connectors.registry:read_details"


class Spec(BaseModel):
    """Unknown fields are refused: the spec of a newer version must not be read with parts left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(Spec):
    """Where a source was asked to begin. Where it does begin is resolved once, when it is made, and kept beside it."""

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

    @property
    def stream_reference(self) -> str:
        """How the upstream's rows name their reference; empty where they do not, and every record is the table's."""
        return ""

    def stream_columns(self, names: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Columns of these names, with their types as the upstream's rows tell them; empty where they do not."""
        return ()


def _details_by_kind(value: Any) -> Any:
    """The details as their kind of source reads them. Connectors are a layer above, so they are imported by name."""
    if isinstance(value, Mapping):
        return load(READ_DETAILS)(value)
    return value


AnyExportDetails = Annotated[SerializeAsAny[ExportDetails], BeforeValidator(_details_by_kind)]


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
    key_format: str | None = None
    """The format of the records' keys; None where the table says FORMAT alone: text, or bytes where that is bytes."""
    columns: tuple[ColumnSpec, ...] = ()
    include: tuple[Include, ...] = ()
    key_columns: tuple[ColumnSpec, ...] = ()
    """The columns that the key is decoded into, instead of the key as a whole in ``include``."""
    primary_key: tuple[str, ...] = ()
    """The columns that make the key, where it is among the columns of the value."""
    envelope: str = DEFAULT_ENVELOPE
    """The name of one; who fills or prints the table looks it up."""
    inline_errors: str | None = None
    """The column that says why a record's value cannot be decoded; None: such records are error rows."""
    on_decode_error: Annotated[
        Literal["record", "stop"],
        Option(
            "ON DECODE ERROR",
            "choice",
            "'RECORD' or 'STOP'",
            choices=("record", "stop"),
            changes=True,
            title="On a decode error",
            about="record: keep a record that cannot be decoded in the table's errors; stop: stall the table",
            stored="`record` or `stop`",
        ),
    ] = "record"
    retain_history_seconds: Annotated[
        int,
        Option(
            "RETAIN HISTORY",
            "duration",
            "a duration such as '1 day'",
            preposition="FOR",
            changes=True,
            milliseconds=1_000,
            unit=" seconds",
            is_whole=True,
            title="History",
            about="how far back the table can be read; whole seconds",
            stored="how far back the table can be read, in seconds",
        ),
    ] = Field(default=DAY_SECONDS, ge=0)
    snapshot: Annotated[
        bool,
        Option(
            "SNAPSHOT",
            "boolean",
            title="With history",
            about="whether the table also gets what the source has read before",
            stored="whether the table also gets what the source had read before",
        ),
    ] = True
    """False: nothing of the source's history belongs to the table; it begins at what comes next."""
    deletion_vectors: Annotated[
        bool,
        Option(
            "DELETION VECTORS",
            "boolean",
            title="Deletion vectors",
            about="of a table whose rows change: whether its files have deletion vectors, so that a change costs what "
            "has changed; false: files are written anew, for readers that know no vectors",
            stored="whether the files of a table whose rows change have deletion vectors",
        ),
    ] = True
    """Tables from before keep files that are written anew, until they are filled again."""
    text_columns: Annotated[
        tuple[str, ...],
        Option(
            "TEXT COLUMNS",
            "names",
            title="Text columns",
            about="read these columns of the upstream as text",
            stored="upstream columns that are read as text",
        ),
    ] = ()
    exclude_columns: Annotated[
        tuple[str, ...],
        Option(
            "EXCLUDE COLUMNS",
            "names",
            title="Columns to leave out",
            about="leave these columns of the upstream out; `IGNORE COLUMNS` is the old name of this option",
            stored="upstream columns that are left out",
        ),
    ] = ()
    details: AnyExportDetails | None = None
    """None for tables from before these were kept."""

    def handled_as(self, newest: TableSpec) -> TableSpec:
        """The columns of this version, with the newest version's handling of rows and of records that do not decode.

        A tick that could be written is the same with both. For one that could not, the user's newest choice counts.
        """
        return self.model_copy(update={name: getattr(newest, name) for name in HANDLING})


TABLE_OPTIONS = options_of(TableSpec)
"""``WITH (…)`` of CREATE TABLE, by their words."""
HANDLING = tuple(option.field for option in TABLE_OPTIONS.values() if option.changes)
"""Fields of a table's spec that no row depends upon: of these, the newest ones count for every tick."""


class SourceSettings(Spec):
    """What may be changed while the ingestion app runs."""

    trigger_interval_ms: Annotated[
        int,
        Option(
            "TRIGGER INTERVAL",
            "duration",
            "a duration such as '500ms'",
            unit=" milliseconds",
            about="how often the source tries to make a tick; at least 50 ms",
        ),
    ] = Field(default=1_000, ge=50)
    max_records_per_tick: Annotated[
        int, Option("MAX RECORDS PER TICK", "whole", about="how many records one tick reads at most")
    ] = Field(default=500_000, ge=1)
    idle_tick_seconds: Annotated[
        float,
        Option(
            "IDLE TICK INTERVAL",
            "duration",
            "a duration such as '10s'",
            milliseconds=1_000,
            unit=" seconds",
            about="how often a source without new records makes an empty tick",
        ),
    ] = Field(default=10.0, gt=0)
    driver_reads: Annotated[
        bool,
        Option(
            "DRIVER READS",
            "boolean",
            about="whether mzshare's own client reads where that is faster: small ticks in the app's driver, large "
            "ones in Spark's tasks; false: Spark's source reads every tick",
        ),
    ] = True
    backfill_rate: Annotated[
        int | None,
        Option(
            "BACKFILL RATE",
            "whole",
            "records per second, a whole number",
            about="how many records per second a backfill of the source reads at most; 0 pauses it",
            unset="no limit",
        ),
    ] = Field(default=None, ge=0)
    """None is no limit, 0 a pause."""
    cutover_wait_ms: Annotated[
        int | None,
        Option(
            "CUTOVER WAIT",
            "duration",
            "a duration such as '250ms'",
            unit=" milliseconds",
            about="how long a tick may wait for a backfill that is one tick behind; with `'0s'` it does not wait",
            unset="a quarter of the trigger interval",
        ),
    ] = Field(default=None, ge=0)
    retain_journal_seconds: Annotated[
        int | None,
        Option(
            "RETAIN JOURNAL",
            "duration",
            "a duration such as '7 days'",
            preposition="FOR",
            milliseconds=1_000,
            unit=" seconds",
            is_whole=True,
            of_journals=True,
            about="of a journal: for how long what was pushed is kept beyond what its tables still need; whole seconds",
            unset="for ever",
        ),
    ] = Field(default=None, ge=0)
    max_journal_bytes: Annotated[
        int | None,
        Option(
            "MAX JOURNAL",
            "size",
            "a size such as '10GB'",
            unit=" bytes",
            of_journals=True,
            about="of a journal: how large it may become; then new records are refused until older ones may go",
            unset="no limit",
        ),
    ] = Field(default=None, ge=1 << 20)


SOURCE_SETTINGS = options_of(SourceSettings)
"""``WITH (…)`` of CREATE SOURCE and ALTER SOURCE … SET, by their words."""
