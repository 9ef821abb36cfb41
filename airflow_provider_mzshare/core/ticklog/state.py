"""What the rules of the tick log decide upon, and what they decide. Values only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position

TableStatus = Literal["created", "backfilling", "converging", "live", "indexing", "stalled", "dropped"]
"""``created`` joins at the next tick. ``backfilling`` executes ticks it has missed, in an app of its own;
``converging`` does so too, and joins at the first tick that begins where it stands. ``indexing`` has left the ticks
because its index was not there: the ingestion app executes them for it beside the others, and it comes back as one that
is converging joins."""
SourceStatus = Literal["active", "stalled", "dropped"]

Generation = tuple[ItemId, int]
"""A table in one of its generations."""

_ORIGIN = Position()


@dataclass(frozen=True)
class Holder:
    """A job that claims to hold a lease. Job id and epoch are both compared: a restored catalog repeats epochs."""

    job_id: JobId
    epoch: int


@dataclass(frozen=True)
class Lease:
    """``job_id`` is None when released. ``beat`` grows while the holder lives; nobody compares clocks."""

    epoch: int = 0
    job_id: JobId | None = None
    beat: int = 0


@dataclass(frozen=True)
class Tick:
    """One durable step of a source: ``[lower, upper)`` at one ``mz_timestamp``."""

    number: int
    lower: Position
    upper: Position
    mz_timestamp: int
    committed: bool = False
    attempts: int = 0
    """How often an execution was begun. After three, the tick is executed member by member."""
    suspect: ItemId | None = None
    """The member that is being executed alone; None again when that ends without a death of the process."""
    deaths: int = 0
    """How often in a row the process died while it executed ``suspect`` alone."""
    repaired: bool = False
    """Put back by a catalog repair: a collection may already be past it."""


@dataclass(frozen=True)
class Snapshot:
    """What a table begins with, where the upstream's log does not go back far enough (see ``snapshots``).

    :param tick: after which it is followed. :param mz_timestamp: the time of that tick.
    :param position: where that tick ends; the snapshot has all that was committed before.
    :param known_from: all that it has was committed before.
    :param seen: in between: which transactions it has, in words of the connector.
    """

    snapshot_id: SnapshotId
    tick: int
    mz_timestamp: int
    position: Position
    known_from: Position
    seen: str

    def to_json(self) -> str:
        """As the commit of its rows has it."""
        places = {"position": dict(self.position.entries), "known_from": dict(self.known_from.entries)}
        return json.dumps({**vars(self), **places}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        plain = json.loads(text)
        places = {name: Position(plain[name]) for name in ("position", "known_from")}
        return cls(**{**plain, **places})


@dataclass(frozen=True)
class TableState:
    table_id: ItemId
    status: TableStatus
    generation: int
    spec_version: int
    start: Position
    """The table never gets offsets before this position."""
    position: Position
    next_tick: int = 1
    """The first tick that it does not have."""
    upper: int = 0
    """The next ``mz_timestamp`` to be written: a read as of anything below it is final."""
    since: int = 0
    reason: str | None = None
    backfill_id: BackfillId | None = None
    """The backfill that brings it up to the log, while it is backfilling or converging."""
    keyed: bool = False
    """Its records change rows: its envelope does not append only."""
    begun_at: int | None = None
    """When the first read for this generation began; None before. Kept for keyed tables (see ``tombstones``)."""
    known_from: Position = _ORIGIN
    """Before this position its rows are not what they were: a compacted upstream had removed records by the time that
    they were read."""
    gone: Position = _ORIGIN
    """What is before it was gone upstream when the generation was asked for all the same: it is not read."""
    awaits_snapshot: bool = False
    """It begins with a snapshot of the upstream, and has none yet."""
    snapshot: Snapshot | None = None
    """The one that it has begun with, until its rows are known: what that has is left out of its ticks."""

    @property
    def identity(self) -> Generation:
        return self.table_id, self.generation


@dataclass(frozen=True)
class EndSeen:
    """Where an upstream ended at some time, and for how long it keeps tombstones (see ``tombstones``)."""

    at: int
    """No later than the moment of the end itself. Milliseconds, as ``tombstones.SteadyClock`` counts them."""
    end: Position
    kept_ms: int | None
    """None: it did not compact."""
    lag_ms: int = 0


@dataclass(frozen=True)
class BackfillState:
    """One backfill of a source: it brings its tables up to the log, then it is thrown away."""

    backfill_id: BackfillId
    history: int
    """The last tick when the backfill was asked for. Ticks up to it are history; the backfill follows later ones."""
    lease: Lease = Lease()
    healing: frozenset[ItemId] = frozenset()
    """Tables that are healed: they had ticks before, and what could be read of them does not change."""
    asked_at: int = 0
    """When it was asked for. Used only to compare which backfill is older."""
    alone: bool = False
    """It was split off to find the table that kills its app, so it is never merged with others."""


@dataclass(frozen=True)
class SourceState:
    """A source as one transaction sees it, behind the source's lock."""

    source_id: ItemId
    status: SourceStatus
    incarnation: str
    """The identity of the upstream, which its name is not: for Kafka the topic id."""
    start: Position
    lease: Lease = Lease()
    last: Tick | None = None
    """The last committed tick."""
    pending: tuple[Tick, ...] = ()
    """Ticks that are minted and not committed, oldest first: at most one, except after a catalog repair."""
    tables: Mapping[ItemId, TableState] = field(default_factory=dict)
    """All that are not dropped, each in its current generation."""
    replacements: Mapping[ItemId, TableState] = field(default_factory=dict)
    """New generations that are being filled, by the table whose current generation they will replace."""
    backfills: Mapping[BackfillId, BackfillState] = field(default_factory=dict)
    """The backfills that have tables to bring up."""
    members: frozenset[ItemId] = frozenset()
    """The tables that take part in the pending ticks, or in the next tick."""
    compaction_asked: int = 0
    """How often maintenance has asked the holder to compact."""
    ends: tuple[EndSeen, ...] = ()
    """Where its upstream ended, oldest first; empty unless there are keyed tables."""
    by_snapshot: bool = False
    """What its upstream held before the log is in no log: tables begin with a snapshot."""

    @property
    def upper(self) -> Position:
        """Where the next tick begins."""
        newest = self.pending[-1] if self.pending else self.last
        return newest.upper if newest else self.start

    @property
    def last_number(self) -> int:
        newest = self.pending[-1] if self.pending else self.last
        return newest.number if newest else 0

    @property
    def last_timestamp(self) -> int:
        newest = self.pending[-1] if self.pending else self.last
        return newest.mz_timestamp if newest else 0


@dataclass(frozen=True)
class Written:
    """A commit that carries a tick in one collection. ``version`` is that of the log entry itself."""

    collection_id: CollectionId
    version: int
    rows: int
    hash: str
    """32 hex digits: the rows' 128-bit hashes added modulo 2^128."""
    hash_version: int = field(default=1, kw_only=True)
    """The version of the row hash. Sums of different versions cannot be compared."""
    tick: int = 0
    """The last tick it carries, and its time."""
    mz_timestamp: int = 0
    first_timestamp: int = 0
    """The time of the first tick it carries: a backfill writes several ticks in one commit."""
    folded: int = 0
    """Records that are no rows of their own: they changed one, took one away, or found none to take away."""
    messages: int | None = None
    """What the pass that wrote it had read, for all tables together; None where the commit does not say."""
    bytes: int = 0


@dataclass(frozen=True)
class Done:
    """All collections of the member hold the tick. ``written`` names those that got a commit."""

    written: tuple[Written, ...] = ()
    rows: int = 0
    errors: int = 0
    folded: int = 0


@dataclass(frozen=True)
class Left:
    """The member did not get the tick, and takes no part in later ticks."""

    reason: str


@dataclass(frozen=True)
class Unindexed:
    """The member did not get the tick, because its index would have to be made first: nobody else waits for that."""


Outcome = Done | Left | Unindexed


@dataclass(frozen=True)
class Minted:
    """The decision to mint: a tick, the tables that become members by it, and those that get a new generation."""

    tick: Tick
    joins: tuple[ItemId, ...] = ()
    swaps: tuple[ItemId, ...] = ()


@dataclass(frozen=True)
class Committed:
    """The decision to commit a tick: what each member ended as. Tables that left before are not in it."""

    tick: Tick
    outcomes: Mapping[ItemId, Outcome]
