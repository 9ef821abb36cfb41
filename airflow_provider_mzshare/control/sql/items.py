"""Statements as values, checked and complete; what they mean for the catalog is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.types.specs import (
    DAY_SECONDS,
    ColumnSpec,
    Format,
    Include,
    KafkaSourceSpec,
    TableSpec,
)

Kind = Literal["source", "table"]


@dataclass(frozen=True)
class CreateSource:
    """``settings`` holds the fields of SourceSettings that were given, and no other."""

    name: QualifiedName
    if_not_exists: bool
    connection: str
    spec: KafkaSourceSpec
    settings: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateTable:
    """``reference`` is None when the source's only one is meant."""

    name: QualifiedName
    if_not_exists: bool
    source: QualifiedName
    reference: str | None
    format: Format
    columns: tuple[ColumnSpec, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: Literal["none"] = "none"
    on_decode_error: Literal["record", "stop"] = "record"
    retain_history_seconds: int = DAY_SECONDS
    snapshot: bool = True
    """False: the table begins where its source stands when it is made."""

    def to_spec(self, reference: str) -> TableSpec:
        """The spec, once the reference is known: the statement's own, or the one the source has."""
        return TableSpec(
            reference=reference,
            format=self.format,
            columns=self.columns,
            include=self.include,
            envelope=self.envelope,
            on_decode_error=self.on_decode_error,
            retain_history_seconds=self.retain_history_seconds,
            snapshot=self.snapshot,
        )


@dataclass(frozen=True)
class AlterSourceSet:
    """Either ``settings`` to change or the names of settings to ``reset`` to their defaults."""

    name: QualifiedName
    settings: Mapping[str, int | float] = field(default_factory=dict)
    reset: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterTable:
    """``resume`` a stalled table where it stands, or ``resnapshot`` it: fill a new generation from its start."""

    name: QualifiedName
    action: Literal["resume", "resnapshot"]


@dataclass(frozen=True)
class DropItem:
    kind: Kind
    name: QualifiedName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Show:
    what: Literal["sources", "tables"]


@dataclass(frozen=True)
class ShowCreate:
    """``kind`` is None when only a name was given."""

    kind: Kind | None
    name: QualifiedName


Statement = CreateSource | CreateTable | AlterSourceSet | AlterTable | DropItem | Show | ShowCreate


@dataclass(frozen=True)
class Transaction:
    """All or nothing. ``explicit``: written as BEGIN … COMMIT."""

    statements: tuple[Statement, ...]
    explicit: bool
