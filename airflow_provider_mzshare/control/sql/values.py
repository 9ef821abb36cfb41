"""Statements as values, checked and complete; what they mean for the catalog is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.options import OptionValue
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import (
    ColumnSpec,
    Include,
    SourceSpec,
    TableSpec,
)
from airflow_provider_mzshare.formats.registry import NATIVE

Kind = Literal["source", "table", "view"]
Reference = tuple[str, ...]
"""One to three parts, as written: ``[[database.]schema.]name``."""
INLINE_COLUMN = "error"
"""What INLINE calls the column of errors, unless it is named."""


@dataclass(frozen=True)
class Output:
    """How one export is decoded: the clauses of a table, or of an old-style source of one output.

    The names are those of a table's spec, which says what they hold.
    """

    format: str = NATIVE
    columns: tuple[ColumnSpec, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: str = DEFAULT_ENVELOPE
    key_format: str | None = None
    key_columns: tuple[ColumnSpec, ...] = ()
    inline_errors: str | None = None
    primary_key: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: TableSpec | CreateTable) -> Output:
        return cls(**{one.name: getattr(found, one.name) for one in fields(cls)})

    def by_name(self) -> dict[str, Any]:
        """For a statement or a spec that has the same fields."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True)
class CreateSource:
    """``settings`` holds the fields of SourceSettings that were given, and no other.

    ``output`` is given for an old-style source of one output (``spec.legacy.shape`` is ``single``) and for no other.
    """

    name: QualifiedName
    if_not_exists: bool
    connection: str | None
    """None for a kind that needs none."""
    spec: SourceSpec
    settings: Mapping[str, int | float] = field(default_factory=dict)
    output: Output | None = None


@dataclass(frozen=True)
class CreateTable:
    """:param reference: None if the source offers only one, which is meant."""

    name: QualifiedName
    if_not_exists: bool
    source: QualifiedName
    reference: Reference | None
    format: str
    columns: tuple[ColumnSpec, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: str = DEFAULT_ENVELOPE
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """By the fields of TableSpec. Options that have their default value are left out."""
    key_format: str | None = None
    key_columns: tuple[ColumnSpec, ...] = ()
    inline_errors: str | None = None
    primary_key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        usual = TableSpec.model_fields
        given = {name: value for name, value in self.options.items() if value != usual[name].default}
        object.__setattr__(self, "options", given)

    @property
    def snapshot(self) -> bool:
        """False: the table begins where its source stands when it is made."""
        return bool(self.options.get("snapshot", True))

    @property
    def text_columns(self) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self.options.get("text_columns", ()))

    @property
    def exclude_columns(self) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self.options.get("exclude_columns", ()))

    def to_spec(self, reference: str, namespace: str | None = None) -> TableSpec:
        """The spec, once the reference is known: the statement's own, or the one the source has."""
        return TableSpec(
            reference=reference,
            namespace=namespace,
            **Output.of(self).by_name(),
            **cast("dict[str, Any]", self.options),
        )


@dataclass(frozen=True)
class CreateSubsource:
    """What SHOW CREATE prints for a subsource, and what is migrated; nobody makes one with it.

    ``reference`` is empty for the old-style name of a source's progress: ``… OF SOURCE s WITH (PROGRESS)``.
    """

    name: QualifiedName
    columns: tuple[ColumnSpec, ...]
    source: QualifiedName
    reference: Reference
    text_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateView:
    """``query`` is one SELECT, in the canonical print of our dialect, with names as they were written."""

    name: QualifiedName
    if_not_exists: bool
    query: str


@dataclass(frozen=True)
class CreateSchema:
    name: str
    if_not_exists: bool = False


# ── ALTER ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AlterSourceSet:
    """Either ``settings`` to change or the names of settings to ``reset`` to their defaults."""

    name: QualifiedName
    settings: Mapping[str, int | float] = field(default_factory=dict)
    reset: tuple[str, ...] = ()


@dataclass(frozen=True)
class AddSubsources:
    """``ALTER SOURCE s ADD SUBSOURCE r [AS n], …``; pairs of a reference and a name, None for the reference's own."""

    source: QualifiedName
    subsources: tuple[tuple[Reference, QualifiedName | None], ...]
    text_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class DropSubsources:
    """``ALTER SOURCE s DROP SUBSOURCE [IF EXISTS] n, … [CASCADE]``."""

    source: QualifiedName
    names: tuple[QualifiedName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RefreshReferences:
    """:param source: its name or its id."""

    source: QualifiedName | ItemId


@dataclass(frozen=True)
class AlterTable:
    """``resume`` a stalled table where it stands, or ``resnapshot`` it: fill a new generation from its start.

    ``force``, of a resnapshot: with what is left, where the upstream has removed history.
    """

    name: QualifiedName
    action: Literal["resume", "resnapshot"]
    force: bool = False


@dataclass(frozen=True)
class AlterTableSet:
    """``settings`` holds fields of TableSpec that may be changed; ``reset`` names those that go back."""

    name: QualifiedName
    settings: Mapping[str, OptionValue] = field(default_factory=dict)
    reset: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rename:
    """``ALTER … RENAME TO n``. A schema is in no other schema, so for a schema ``name`` is plain text."""

    kind: Literal["source", "table", "view", "schema"]
    name: QualifiedName | str
    new_name: str


@dataclass(frozen=True)
class Swap:
    """``ALTER TABLE a SWAP WITH b`` and the same for schemas: the names change places, nothing else does.

    ``force``: whatever state the tables are in.
    """

    kind: Literal["table", "schema"]
    name: QualifiedName | str
    other: QualifiedName | str
    force: bool = False


Flag = Literal["enable_create_table_from_source", "force_source_table_syntax"]


@dataclass(frozen=True)
class AlterSystem:
    """``value`` None: RESET. ``name`` is a flag, or a setting of the whole catalog."""

    name: str
    value: bool | str | None


@dataclass(frozen=True)
class CommentOn:
    """``comment`` None takes it away."""

    kind: Literal["source", "table", "view", "schema", "column"]
    name: QualifiedName | str
    comment: str | None
    column: str | None = None


# ── DROP, SHOW and the rest ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class DropItem:
    """Without ``cascade`` it is RESTRICT, which is SQL's default."""

    kind: Kind
    name: QualifiedName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class DropSchema:
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Show:
    """:param schema: list only objects of this schema (``SHOW TABLES FROM s``)."""

    what: Literal["sources", "tables", "views", "schemas", "subsources"]
    schema: str | None = None


@dataclass(frozen=True)
class ShowCreate:
    """``kind`` is None when only a name was given."""

    kind: Kind | None
    name: QualifiedName


@dataclass(frozen=True)
class Query:
    """A SELECT on the catalog's relations, as text for the catalog's own database."""

    text: str


@dataclass(frozen=True)
class Write:
    """INSERT, UPDATE or DELETE: always refused, with the name of what feeds the table."""

    verb: Literal["INSERT", "UPDATE", "DELETE"]
    name: QualifiedName


Plain = (
    CreateSource | CreateTable | CreateSubsource | CreateView | CreateSchema | AlterSourceSet | AddSubsources
    | DropSubsources | RefreshReferences | AlterTable | AlterTableSet | Rename | Swap | AlterSystem | CommentOn
    | DropItem | DropSchema | Show | ShowCreate | Query | Write
)  # fmt: skip


@dataclass(frozen=True)
class Explain:
    """What the statement would do; it does nothing."""

    statement: Plain


Statement = Plain | Explain


@dataclass(frozen=True)
class Transaction:
    """All or nothing. ``explicit``: written as BEGIN … COMMIT."""

    statements: tuple[Statement, ...]
    explicit: bool
