"""What a kind of source is to the rest of the program: all that anybody asks of one stands in its folder.

A kind is an instance of a subclass of :class:`ConnectorKind`, registered by one line (``connectors/registry.py``, or
the entry points of another package). Its module is imported to read and to print statements, so what connects is only
named there (:attr:`ConnectorKind.connector`), and loaded when somebody connects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from airflow_provider_mzshare.connectors.base import Connector, ReferenceInfo
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.core.options import Option, OptionValue
from airflow_provider_mzshare.core.registry import load
from airflow_provider_mzshare.core.specs import ExportDetails, SourceSpec, Start, TableSpec

S = TypeVar("S", bound=SourceSpec)

CHUNK_SETTINGS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20)}
"""Without, Spark counts cells alone, and gives thousands of chunks of rows at once."""

Clause = Literal["FORMAT", "INCLUDE", "ENVELOPE", "FOR", "a column list"]
"""Of old syntax, on a source."""


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
    """Under which it is registered, and which is stored: ``kafka``."""
    title: ClassVar[str]
    """In messages: ``Kafka``."""
    spec: type[S]
    details: type[ExportDetails]
    """Which a table keeps; ``kind`` tells them apart."""
    connector: ClassVar[str]
    """``module:class`` of its :class:`Connector`, made of a spec, a connection and an incarnation."""

    # ── in SQL ────────────────────────────────────────────────────────────────────────────────────────────────────────

    words: ClassVar[str]
    """Behind FROM: ``LOAD GENERATOR``."""
    takes_connection: ClassVar[bool] = False
    """Whether ``CONNECTION c`` follows; its name is the spec's field ``connection``."""
    options: ClassVar[tuple[Option, ...]] = ()
    """In brackets, in the order in which they are printed. The brackets may be left out unless one is required."""
    variants: ClassVar[Mapping[str, Collection[str]]] = {}
    """Words that may follow the kind's, and the options that each has; empty for a kind that has none."""
    variants_later: ClassVar[tuple[str, ...]] = ()
    """Those that are refused as not supported yet."""
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
        """None for a kind that needs none."""
        return getattr(spec, "connection", None)

    def topic(self, spec: S) -> str | None:
        """The one thing that a source reads, where it reads one thing."""
        return None

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    has_columns: ClassVar[bool] = False
    """The upstream has columns of its own, and no format says how records are decoded."""
    metadata: ClassVar[tuple[str, ...]] = ("partition", "offset", "timestamp", "key")
    """What INCLUDE may name."""

    database: ClassVar[str | None] = None
    """What may stand in front of the schema in a reference of three parts."""

    @property
    def default_format(self) -> str:
        return "none" if self.has_columns else "json"

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
        """They are subsources; a single one is the source itself."""
        return False

    def misplaced(self, variant: str | None, given: Collection[Clause]) -> Iterable[tuple[Clause, str]]:
        """Clauses that have no place, and why; the first of them is told. New kinds have no old syntax at all."""
        return [(clause, f"of a {self.words} source it is said by CREATE TABLE … FROM SOURCE") for clause in given]

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    conn_types: ClassVar[tuple[str, ...]] = ()
    """Of the connections that it connects through."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Without which it cannot connect; ``mzshare doctor`` looks for them."""
    place: ClassVar[Place] = PARTITIONED
    """Of its records, in every collection that is fed from it."""
    spark_settings: ClassVar[Mapping[str, str]] = {}
    """Of a session that reads it, beside those that every app has; ``CHUNK_SETTINGS`` where it gives rows."""
    executor_modules: ClassVar[tuple[str, ...]] = ()
    """Modules that Spark's Python processes need to read it. They travel to executors that do not have this package."""

    def connect(self, spec: S, connection: Connection | None, incarnation: str | None) -> Connector:
        found: Connector = load(self.connector)(spec, connection, incarnation)
        return found

    def reach(self, connection: Connection) -> str:
        """Log in through a connection and say what answered."""
        return str(load(self.connector).reach(connection))
