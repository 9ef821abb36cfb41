"""The catalog's tables as typed rows. No behaviour: rules and transactions live elsewhere."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import ForeignKey, Index, Text, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from airflow_provider_mzshare.control.catalog.database.base import COUNTED, Base, PositionText, SnapshotText
from airflow_provider_mzshare.control.catalog.database.object_models import ItemKind
from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Snapshot, SourceStatus, TableStatus

JobState = Literal[
    "launching", "starting", "running", "stopping", "stopped", "finished", "fenced", "stalled", "failed", "lost"
]


class CounterRow(Base):
    """``item`` numbers the items; its row is also the lock of the namespace. ``backfills`` counts nothing: its row is
    the lock for starting the apps of backfills, and is taken after a source's lock."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[int]


class ItemRow(Base):
    """All kinds of items share one namespace; a dropped item keeps its id, and its name becomes free."""

    __tablename__ = "items"

    id: Mapped[ItemId] = mapped_column(Text, primary_key=True)
    number: Mapped[int] = mapped_column(unique=True)
    kind: Mapped[ItemKind] = mapped_column(Text)
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
    compaction_asked: Mapped[int] = mapped_column(server_default="0")
    """Grows by one each time maintenance asks the app that holds the source to compact."""


class Progress:
    """How far one generation of a table has come, and the backfill that fills it, if any."""

    generation: Mapped[int]
    status: Mapped[TableStatus] = mapped_column(Text)
    reason: Mapped[str | None]
    position: Mapped[Position] = mapped_column(PositionText)
    next_tick: Mapped[int] = mapped_column(server_default="1")
    upper: Mapped[int]
    since: Mapped[int]
    rows: Mapped[int]
    errors: Mapped[int]
    folded: Mapped[int] = mapped_column(server_default="0")
    """Of a keyed table: its records that are neither rows of their own nor errors."""
    backfill_id: Mapped[BackfillId | None] = mapped_column(Text)
    begun_at: Mapped[int | None]
    """Of a keyed table: when its first read began."""
    known_from: Mapped[Position] = mapped_column(PositionText, server_default="{}")
    """Of a keyed table: where a compacted upstream ended when it was last read late. Nothing is known before that."""
    gone: Mapped[Position] = mapped_column(PositionText, server_default="{}")
    """What is before it was gone upstream when this generation was asked for, and is not read."""
    awaits_snapshot: Mapped[bool] = mapped_column(server_default=false())
    """It begins with a snapshot of the upstream, and has none yet."""
    snapshot: Mapped[Snapshot | None] = mapped_column(SnapshotText)
    """The one that it has begun with, until its rows are known."""


class TableRow(Progress, Base):
    """A table, with the progress of its current generation."""

    __tablename__ = "tables"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), index=True)
    spec: Mapped[str]
    """The newest; all that were valid before are in ``SpecRow``."""
    spec_version: Mapped[int]
    start: Mapped[Position] = mapped_column(PositionText)
    start_tick: Mapped[int] = mapped_column(server_default="1")
    """The table's first tick. A new generation begins with the same tick."""
    since_noted: Mapped[int] = mapped_column(server_default="0")
    """``since`` as maintenance found it at ``since_noted_at``: when that is long ago, older data may be removed."""
    since_noted_at: Mapped[int] = mapped_column(server_default="0")
    keyed: Mapped[bool] = mapped_column(server_default=false())
    """Its envelope does not append only."""


class SpecRow(Base):
    """A version of a table's spec: valid from ``first_tick`` on, until a later version's."""

    __tablename__ = "table_specs"

    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    first_tick: Mapped[int]
    spec: Mapped[str]


class ReplacementRow(Progress, Base):
    """A new generation that is filled beside the current one, until a tick puts it in its place."""

    __tablename__ = "replacements"

    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), primary_key=True)


class SwapRow(Base):
    """A generation that was replaced: it answers reads from before ``mz_timestamp``, up to its own ``upper``."""

    __tablename__ = "swaps"

    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), primary_key=True)
    generation: Mapped[int] = mapped_column(primary_key=True)
    mz_timestamp: Mapped[int]
    upper: Mapped[int]


class ReadHoldRow(Base):
    """What keeps ``since`` of a table back. Written behind the lock of the table's source. Times are the database's."""

    __tablename__ = "read_holds"

    name: Mapped[str] = mapped_column(primary_key=True)
    """Chosen by the holder, who finds it again by this name after a restart."""
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), index=True)
    at: Mapped[int]
    holder: Mapped[str]
    claim: Mapped[str]
    taken_at: Mapped[int]
    heartbeat: Mapped[int]
    limit_ms: Mapped[int]
    dropped_at: Mapped[int | None]
    """When it stopped holding. Its holder is still to be told."""
    why: Mapped[str | None]
    named: Mapped[bool]


class BackfillRow(Base):
    """A backfill is over when no table refers to it; the row stays, for its certificates."""

    __tablename__ = "backfills"

    id: Mapped[BackfillId] = mapped_column(Text, primary_key=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), index=True)
    created_at: Mapped[int]
    history_tick: Mapped[int]
    history_upper: Mapped[Position] = mapped_column(PositionText)
    lease_epoch: Mapped[int]
    lease_job: Mapped[JobId | None] = mapped_column(Text)
    lease_beat: Mapped[int]
    alone: Mapped[bool] = mapped_column(server_default=false())
    """It was split off from a backfill whose app died several times in a row, so it is never merged with others."""
    queued_at: Mapped[int | None]
    """Its place in the queue: when it should have got an app but too many backfills ran. NULL once it is started."""


class BackfillTableRow(Base):
    """What a backfill has written for one table."""

    __tablename__ = "backfill_tables"

    backfill_id: Mapped[BackfillId] = mapped_column(Text, ForeignKey("backfills.id"), primary_key=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), primary_key=True)
    generation: Mapped[int]
    heals: Mapped[bool]
    """The generation had ticks before it stalled: this backfill heals it."""
    from_tick: Mapped[int]
    from_position: Mapped[Position] = mapped_column(PositionText)
    rows: Mapped[int]
    errors: Mapped[int]
    data_hash: Mapped[str]
    errors_hash: Mapped[str]
    records: Mapped[int]
    """Offsets it has gone through, in groups that took ``busy_ms`` in all. The rate is computed from both."""
    busy_ms: Mapped[int]
    ahead: Mapped[int] = mapped_column(server_default="0")
    """Offsets after the table's position that some run has read already: progress within a group, shown to people."""
    groups: Mapped[int] = mapped_column(server_default="0")
    """Groups that had records: the rate was measured over these."""
    asked_as: Mapped[BackfillId] = mapped_column(Text, server_default="")
    """The backfill that the table was asked for with. It differs from ``backfill_id`` after a merge."""


class SnapshotRow(Base):
    """A snapshot that a backfill has taken, and one of the tables that it was taken for."""

    __tablename__ = "snapshots"

    id: Mapped[SnapshotId] = mapped_column(Text, primary_key=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), primary_key=True, index=True)
    backfill_id: Mapped[BackfillId] = mapped_column(Text)
    snapshot: Mapped[Snapshot] = mapped_column(SnapshotText)
    generation: Mapped[int]
    rows_expected: Mapped[int]
    """Roughly, as the upstream says."""
    rows_read: Mapped[int]
    taken_at: Mapped[int]
    landed_at: Mapped[int | None]
    """When the catalog learned that the table begins with it: at most one of a generation does."""


class CertificateRow(Base):
    """The proof of a cutover: who wrote which range, with row counts and hashes."""

    __tablename__ = "certificates"

    number: Mapped[int] = mapped_column(COUNTED, primary_key=True, autoincrement=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), index=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"))
    generation: Mapped[int]
    backfill_id: Mapped[BackfillId] = mapped_column(Text, ForeignKey("backfills.id"))
    tick: Mapped[int]
    mz_timestamp: Mapped[int]
    from_tick: Mapped[int]
    history_tick: Mapped[int]
    start: Mapped[Position] = mapped_column(PositionText)
    history_upper: Mapped[Position] = mapped_column(PositionText)
    cutover: Mapped[Position] = mapped_column(PositionText)
    rows: Mapped[int]
    errors: Mapped[int]
    data_hash: Mapped[str]
    errors_hash: Mapped[str]
    hash_version: Mapped[int] = mapped_column(server_default="1")
    backfill_jobs: Mapped[str]
    ingestion_job: Mapped[JobId | None] = mapped_column(Text)
    created_at: Mapped[int]


class CollectionRow(Base):
    """``path`` is relative to the warehouse."""

    __tablename__ = "collections"

    id: Mapped[CollectionId] = mapped_column(Text, primary_key=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"))
    generation: Mapped[int]
    role: Mapped[str]
    path: Mapped[str]
    created_at: Mapped[int]
    hash_version: Mapped[int] = mapped_column(server_default="1")
    """How its rows are hashed: in its commits, and in the sums that backfills and certificates hold."""

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
    first_timestamp: Mapped[int] = mapped_column(server_default="0")
    """The time of the first tick it carries, since a backfill writes several ticks in one commit."""

    __table_args__ = ({"sqlite_with_rowid": False},)


class EndRow(Base):
    """Where an upstream ended at some time: few rows per source, and only while it has keyed tables."""

    __tablename__ = "upstream_ends"

    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), primary_key=True)
    at: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[Position] = mapped_column(PositionText)
    kept_ms: Mapped[int | None]
    """For how long it keeps tombstones; NULL: it did not compact."""
    lag_ms: Mapped[int]


class JobRow(Base):
    """One run of an app; the row is written before the launch."""

    __tablename__ = "jobs"

    number: Mapped[int] = mapped_column(COUNTED, primary_key=True, autoincrement=True)
    id: Mapped[JobId] = mapped_column(Text, unique=True)
    kind: Mapped[str]
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"))
    backfill_id: Mapped[BackfillId | None] = mapped_column(Text)
    state: Mapped[JobState] = mapped_column(Text)
    launcher: Mapped[str]
    master: Mapped[str | None]
    host: Mapped[str | None]
    machine: Mapped[str | None]
    """The machine and boot that ``pid`` belongs to; NULL for runs from before it was recorded."""
    pid: Mapped[int | None]
    pid_started: Mapped[float | None]
    folder: Mapped[str]
    created_at: Mapped[int]
    started_at: Mapped[int | None]
    running_at: Mapped[int | None]
    ended_at: Mapped[int | None]
    stop_requested: Mapped[bool]
    error: Mapped[str | None]
    exit_code: Mapped[int | None]
    ui_url: Mapped[str | None]
    """The address of Spark's own pages, where they are switched on."""

    __table_args__ = (Index("jobs_source", "source_id", "number"), Index("jobs_backfill", "backfill_id", "number"))
