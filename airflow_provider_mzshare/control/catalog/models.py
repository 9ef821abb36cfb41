"""The catalog's tables as typed rows. No behaviour: rules and transactions live elsewhere."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, MetaData, Text, UniqueConstraint, text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from airflow_provider_mzshare.storage.ticks.state import SourceStatus, TableStatus
from airflow_provider_mzshare.types.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.types.positions import Position

JobState = Literal[
    "launching", "starting", "running", "stopping", "stopped", "finished", "fenced", "stalled", "failed", "lost"
]


class PositionText(TypeDecorator[Position]):
    """A position as its canonical JSON: equal positions are equal texts."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Position | None, dialect: Dialect) -> str | None:
        return None if value is None else value.to_json()

    def process_result_value(self, value: Any, dialect: Dialect) -> Position | None:
        return None if value is None else Position.from_json(value)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "%(table_name)s_%(column_0_N_name)s",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
            "pk": "%(table_name)s_pkey",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {int: BigInteger, str: Text}


class CounterRow(Base):
    """``item`` numbers the items; its row is also the lock of the namespace."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[int]


class SchemaRow(Base):
    __tablename__ = "schemas"

    name: Mapped[str] = mapped_column(primary_key=True)


class ItemRow(Base):
    """Sources and tables share one namespace; a dropped item keeps its id and gives its name free."""

    __tablename__ = "items"

    id: Mapped[ItemId] = mapped_column(Text, primary_key=True)
    number: Mapped[int] = mapped_column(unique=True)
    kind: Mapped[str]
    schema_name: Mapped[str] = mapped_column(ForeignKey("schemas.name"))
    name: Mapped[str]
    created_at: Mapped[int]
    dropped_at: Mapped[int | None]

    __table_args__ = (
        Index(
            "items_live_name",
            "schema_name",
            "name",
            unique=True,
            sqlite_where=text("dropped_at IS NULL"),
            postgresql_where=text("dropped_at IS NULL"),
        ),
    )


class SourceRow(Base):
    """Whoever writes anything about a source, its tables or its ticks locks this row first."""

    __tablename__ = "sources"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    spec: Mapped[str]
    settings: Mapped[str]
    incarnation: Mapped[str]
    start: Mapped[Position] = mapped_column(PositionText)
    status: Mapped[SourceStatus] = mapped_column(Text)
    reason: Mapped[str | None]
    message: Mapped[str | None]
    desired: Mapped[str]
    lease_epoch: Mapped[int]
    lease_job: Mapped[JobId | None] = mapped_column(Text)
    lease_beat: Mapped[int]


class TableRow(Base):
    __tablename__ = "tables"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), index=True)
    spec: Mapped[str]
    spec_version: Mapped[int]
    generation: Mapped[int]
    status: Mapped[TableStatus] = mapped_column(Text)
    reason: Mapped[str | None]
    start: Mapped[Position] = mapped_column(PositionText)
    position: Mapped[Position] = mapped_column(PositionText)
    upper: Mapped[int]
    since: Mapped[int]
    rows: Mapped[int]
    errors: Mapped[int]


class CollectionRow(Base):
    """``path`` is relative to the warehouse."""

    __tablename__ = "collections"

    id: Mapped[CollectionId] = mapped_column(Text, primary_key=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"))
    generation: Mapped[int]
    role: Mapped[str]
    path: Mapped[str]
    created_at: Mapped[int]

    __table_args__ = (UniqueConstraint("table_id", "generation", "role"),)


class TickRow(Base):
    __tablename__ = "ticks"

    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    lower: Mapped[Position] = mapped_column(PositionText)
    upper: Mapped[Position] = mapped_column(PositionText)
    mz_timestamp: Mapped[int]
    minted_at: Mapped[int]
    committed_at: Mapped[int | None]
    committed: Mapped[bool]
    epoch: Mapped[int]
    job_id: Mapped[JobId | None] = mapped_column(Text)
    attempts: Mapped[int]
    suspect: Mapped[ItemId | None] = mapped_column(Text)
    deaths: Mapped[int]
    repaired: Mapped[bool]
    stats: Mapped[str | None]

    __table_args__ = (UniqueConstraint("source_id", "mz_timestamp"),)


class MembershipRow(Base):
    """A table takes part in the ticks from ``joined_at`` to before ``left_at``."""

    __tablename__ = "membership"

    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), primary_key=True)
    joined_at: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"))
    generation: Mapped[int]
    spec_version: Mapped[int]
    left_at: Mapped[int | None]
    reason: Mapped[str | None]

    __table_args__ = (
        Index(
            "membership_current",
            "source_id",
            sqlite_where=text("left_at IS NULL"),
            postgresql_where=text("left_at IS NULL"),
        ),
    )


class CommitRow(Base):
    """The log entry of a collection that carries a tick; a tick without rows has none."""

    __tablename__ = "commits"

    collection_id: Mapped[CollectionId] = mapped_column(Text, ForeignKey("collections.id"), primary_key=True)
    mz_timestamp: Mapped[int] = mapped_column(primary_key=True)
    tick: Mapped[int]
    version: Mapped[int]
    rows: Mapped[int]
    hash: Mapped[str]

    __table_args__ = ({"sqlite_with_rowid": False},)


class JobRow(Base):
    """One run of an app; the row is written before the launch."""

    __tablename__ = "jobs"

    number: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True
    )
    id: Mapped[JobId] = mapped_column(Text, unique=True)
    kind: Mapped[str]
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"))
    state: Mapped[JobState] = mapped_column(Text)
    launcher: Mapped[str]
    master: Mapped[str | None]
    host: Mapped[str | None]
    pid: Mapped[int | None]
    pid_started: Mapped[float | None]
    folder: Mapped[str]
    created_at: Mapped[int]
    started_at: Mapped[int | None]
    ended_at: Mapped[int | None]
    stop_requested: Mapped[bool]
    error: Mapped[str | None]
    exit_code: Mapped[int | None]

    __table_args__ = (Index("jobs_source", "source_id", "number"),)
