"""What the rules of the tick log decide upon, and what they decide. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from airflow_provider_mzshare.types.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.types.positions import Position

TableStatus = Literal["created", "live", "stalled", "dropped"]
SourceStatus = Literal["active", "stalled", "dropped"]


@dataclass(frozen=True)
class Holder:
    """Who says it holds a source. Job id and epoch both count: epochs repeat after a restored catalog."""

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
    """Executions begun. Past three, the tick is executed member by member."""
    suspect: ItemId | None = None
    """The member that is being executed alone, until that ends in order."""
    deaths: int = 0
    """How often in a row the process died while it executed ``suspect`` alone."""
    repaired: bool = False
    """Put back by a catalog repair: a collection may already be past it."""


@dataclass(frozen=True)
class TableState:
    table_id: ItemId
    status: TableStatus
    generation: int
    spec_version: int
    start: Position
    """Offsets below it never belong to the table."""
    position: Position
    upper: int = 0
    """The next ``mz_timestamp`` to be written: a read as of anything below it is final."""
    since: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class SourceState:
    """A source as one transaction sees it, behind the source's lock."""

    source_id: ItemId
    status: SourceStatus
    incarnation: str
    """Which upstream this is, beyond its name: a topic id."""
    start: Position
    lease: Lease = Lease()
    last: Tick | None = None
    """The last committed tick."""
    pending: tuple[Tick, ...] = ()
    """Minted and not committed, oldest first: at most one, but for a repaired catalog."""
    tables: Mapping[ItemId, TableState] = field(default_factory=dict)
    """All that are not dropped."""
    members: frozenset[ItemId] = frozenset()
    """Who takes part in the pending ticks, or in the next one unless it leaves."""

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


@dataclass(frozen=True)
class Done:
    """All collections of the member hold the tick. ``written`` names those that got a commit."""

    written: tuple[Written, ...] = ()
    rows: int = 0
    errors: int = 0


@dataclass(frozen=True)
class Left:
    """The member did not get the tick and takes no part from here on."""

    reason: str


Outcome = Done | Left


@dataclass(frozen=True)
class Minted:
    """The decision to mint: a tick, and the tables that become members by it."""

    tick: Tick
    joins: tuple[ItemId, ...]


@dataclass(frozen=True)
class Committed:
    """The decision to commit a tick: what each member ended as. Tables that left before are not in it."""

    tick: Tick
    outcomes: Mapping[ItemId, Outcome]
