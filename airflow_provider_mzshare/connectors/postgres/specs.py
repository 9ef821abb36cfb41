"""What is stored of a Postgres source and of its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.postgres.relations import type_mark
from airflow_provider_mzshare.core.specs import ColumnSpec, ExportDetails, SourceSpec, Spec

Identifying = Literal["d", "i", "f", "n"]
"""What tells rows apart in the stream, as Postgres has it: the primary key, an index, all columns, nothing."""


class PostgresSpec(SourceSpec):
    """A source that reads the tables of a publication, through a replication slot of its own."""

    kind: Literal["postgres"] = "postgres"
    connection: str
    publication: str


class UpstreamColumn(Spec):
    """A column of a table upstream, as it was when ours was made."""

    name: str
    oid: int
    """Of its type, as the stream names it."""
    mod: int
    """The modifier of its type, -1 if there is none: the length or the precision."""
    upstream: str
    """The type as Postgres writes it: ``numeric(10,2)``."""
    type: str | None = None
    """Ours; None for a type that only TEXT COLUMNS takes."""


def columns_of(published: Iterable[UpstreamColumn]) -> tuple[ColumnSpec, ...]:
    """As ours; text where no type of ours holds all values."""
    return tuple(ColumnSpec(name=column.name, type=column.type or "text") for column in published)


def text_only(published: Iterable[UpstreamColumn]) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, column.upstream) for column in published if column.type is None)


@dataclass(frozen=True)
class PublishedTable(ReferenceInfo):
    """:param oid: of the table. :param identity: what its deletes and updates carry of the row before."""

    oid: int = 0
    identity: Identifying = "d"
    published: tuple[UpstreamColumn, ...] = ()


class PostgresExportDetails(ExportDetails):
    kind: Literal["postgres"] = "postgres"
    oid: int = 0
    """Of the table upstream: it stays when the table is renamed, and changes when it is made anew."""
    identity: Identifying = "d"
    columns: tuple[UpstreamColumn, ...] = ()
    """All that are published, in Postgres' order, also those that were excluded."""
    keys: tuple[str, ...] = ()
    """The columns that identify a row in the stream."""

    @property
    def stream_reference(self) -> str:
        """How the rows of the stream name their table."""
        return str(self.oid)

    def stream_columns(self, names: Collection[str]) -> tuple[tuple[str, str], ...]:
        return tuple(
            (column.name, type_mark(column.oid, column.mod)) for column in self.columns if column.name in names
        )
