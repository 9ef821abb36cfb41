"""A kind of source, as the rest of the program uses it: everything about one kind is in its folder.

A kind is an instance of a subclass of :class:`ConnectorKind`, registered by one line (``connectors/registry.py``, or
the entry points of another package). Its module is imported to read and to print statements, so what connects is only
named there (:attr:`ConnectorKind.connector`), and loaded when somebody connects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from airflow_provider_mzshare.connectors.base import Connector, Journals, ReferenceInfo
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.core.options import Option, OptionValue
from airflow_provider_mzshare.core.registry import load
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import ExportDetails, SourceSpec, Start, TableSpec

S = TypeVar("S", bound=SourceSpec)

CHUNK_SETTINGS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20)}
"""Without this, Spark only counts cells, and would give thousands of chunks of rows at once."""

SEGMENT_MODULES = (
    *(f"airflow_provider_mzshare.journal.{n}" for n in ("blocks", "files", "index", "messages", "parts", "reading")),
    "airflow_provider_mzshare.connectors.segment_source",
)
"""Modules that executors need to read from the segments of a journal."""

Clause = Literal["FORMAT", "INCLUDE", "ENVELOPE", "FOR", "a column list"]
"""A clause of old syntax on a source."""


@dataclass(frozen=True)
class Written:
    """What stands behind FROM: ``LOAD GENERATOR AUCTION (UP TO 5)``.

    :param variant: ``AUCTION``; None for a kind that has none.
    :param options: values by their words.
    """

    connection: str | None = None
    variant: str | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)


class ConnectorKind(Generic[S]):
    kind: ClassVar[str]
    """The name that it is registered by, and that is stored: ``kafka``."""
    title: ClassVar[str]
    """The name in messages: ``Kafka``."""
    spec: type[S]
    details: type[ExportDetails]
    """What a table of this kind stores about its reference; its field ``kind`` tells kinds apart."""
    connector: ClassVar[str]
    """``module:class`` of its :class:`Connector`, made of a spec, a connection and an incarnation."""

    # ── in SQL ────────────────────────────────────────────────────────────────────────────────────────────────────────

    words: ClassVar[str]
    """The words after FROM: ``LOAD GENERATOR``."""
    takes_connection: ClassVar[bool] = False
    """Whether ``CONNECTION c`` follows; its name is the spec's field ``connection``."""
    options: ClassVar[tuple[Option, ...]] = ()
    """The options in brackets, in the order of printing. The brackets may be left out unless an option is required."""
    variants: ClassVar[Mapping[str, Collection[str]]] = {}
    """Words that may follow the kind's, and the options that each has; empty for a kind that has none."""
    variants_later: ClassVar[tuple[str, ...]] = ()
    """Variants that are refused as not supported yet."""
    variant_field: ClassVar[str] = ""
    """The spec's field, which holds the variant as ``key_value``."""

    def read(self, written: Written) -> S:
        """The spec. Raises ValueError with what is wrong beyond single options."""
        fields: dict[str, Any] = {
            option.field: written.options[option.words]
            for option in self.options
            if option.field and option.words in written.options
        }
        if self.takes_connection:
            fields["connection"] = written.connection
        if written.variant:
            fields[self.variant_field] = written.variant.lower().replace(" ", "_")
        return self.spec(**fields)

    def write(self, spec: S) -> Written:
        """What reads back to the same spec, without what is the default anyway."""
        fields = type(spec).model_fields
        options = {
            option.words: value
            for option in self.options
            if option.field and (value := getattr(spec, option.field)) != fields[option.field].default
        }
        return Written(self.connection_name(spec), self.variant(spec), options)

    def variant(self, spec: S) -> str | None:
        return str(getattr(spec, self.variant_field)).upper().replace("_", " ") if self.variant_field else None

    def shown(self, spec: S) -> str:
        """In the words of CREATE SOURCE: ``LOAD GENERATOR AUCTION``."""
        variant = self.variant(spec)
        return f"{self.words} {variant}" if variant else self.words

    # ── what is shown of it ───────────────────────────────────────────────────────────────────────────────────────────

    relation: ClassVar[Literal["records", "tables"] | None] = None
    """Whether the catalog has a relation of its own for tables of this kind, and what that tells: formats of records,
    or tables upstream. Of this package's kinds alone: a catalog's relations must not depend on what else is installed.
    """

    def connection_name(self, spec: S) -> str | None:
        """The name of the source's connection; None for a kind that needs none."""
        return getattr(spec, "connection", None)

    def topic(self, spec: S) -> str | None:
        """The topic of the source; None for a kind without topics."""
        return None

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    has_columns: ClassVar[bool] = False
    """Whether the upstream has columns of its own, so that statements say no format and no envelope."""
    own_format: ClassVar[str] = "none"
    """The format that types the columns of an upstream that has its own."""
    own_envelope: ClassVar[str] = DEFAULT_ENVELOPE
    """What the records of such an upstream mean, where a statement says nothing: each is a row, or changes one."""
    metadata: ClassVar[tuple[str, ...]] = ("partition", "offset", "timestamp", "key")
    """What INCLUDE may name."""

    database: ClassVar[str | None] = None
    """The database that may stand before the schema, in a reference of three parts."""

    @property
    def default_format(self) -> str:
        return self.own_format if self.has_columns else "json"

    def start(self, spec: S) -> Start:
        """Where the source was asked to begin."""
        return Start()

    def export(self, source: S, table: TableSpec, reference: ReferenceInfo) -> ExportDetails:
        """What a new table keeps of what it was made from."""
        return self.details(kind=self.kind)

    def stored_reference(self, table: TableSpec) -> ReferenceInfo:
        """What a table that is there was made from, as it was then."""
        return ReferenceInfo(table.namespace, table.reference, database=self.database)

    # ── old syntax ────────────────────────────────────────────────────────────────────────────────────────────────────

    def has_several_outputs(self, spec: S) -> bool:
        """Whether the outputs are subsources in old syntax; a single output is the source itself."""
        return False

    def misplaced(self, variant: str | None, given: Collection[Clause]) -> Iterable[tuple[Clause, str]]:
        """Clauses that this source cannot have, and why; the first is reported. New kinds have no old syntax at all."""
        return [(clause, f"for a {self.words} source, write it in CREATE TABLE … FROM SOURCE") for clause in given]

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    conn_types: ClassVar[tuple[str, ...]] = ()
    """The types of Airflow connections that it can use."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that it needs to connect; ``mzshare doctor`` looks for them."""
    place: ClassVar[Place] = PARTITIONED
    """The place of its records, in every collection that is fed from it."""
    spark_settings: ClassVar[Mapping[str, str]] = {}
    """Spark settings of a session that reads it, besides those of every app; ``CHUNK_SETTINGS`` if it gives rows."""
    is_journal: ClassVar[bool] = False
    """Whether its records are read from a journal: then its connector is made of a spec, an incarnation and the
    journals."""
    is_recorded: ClassVar[bool] = False
    """Whether the upstream cannot be read twice, so that what it says is first written down in a journal: then its
    connector is made of a spec, a connection, an incarnation, which ends in the journal's id, and the journals."""

    leaves: ClassVar[str] = ""
    """What the upstream keeps for a source that was dropped, until a reconciler has taken it away."""

    def left(self, incarnation: str) -> str:
        """What that is called there."""
        return self.leaves

    def pushers(self, spec: S) -> int:
        """How many may push records into a source at the same time, each into a partition; 0: nobody pushes into it."""
        return 0

    executor_modules: ClassVar[tuple[str, ...]] = ()
    """Modules that Spark's Python processes need to read it. They travel to executors that do not have this package."""

    def connect(
        self, spec: S, connection: Connection | None, incarnation: str | None, journals: Journals | None = None
    ) -> Connector:
        others: tuple[Any, ...] = (incarnation, journals) if self.is_journal else (connection, incarnation)
        if self.is_recorded:
            others = (connection, incarnation, journals)
        found: Connector = load(self.connector)(spec, *others)
        return found

    def reach(self, connection: Connection) -> str:
        """Log in through a connection and say what answered."""
        return str(load(self.connector).reach(connection))
