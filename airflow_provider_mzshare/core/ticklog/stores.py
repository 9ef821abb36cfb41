"""The stores that the tick log and its backfills need; the catalog implements them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings, TableSpec
from airflow_provider_mzshare.core.ticklog.backfill_rules import Followed
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import (
    Generation,
    Holder,
    Lease,
    Left,
    Outcome,
    Snapshot,
    SourceState,
    Tick,
)


class Member(Protocol):
    """A table as a writer needs it, in one generation and with the spec of one tick."""

    @property
    def table_id(self) -> ItemId: ...
    @property
    def name(self) -> str: ...
    @property
    def spec(self) -> TableSpec: ...
    @property
    def data(self) -> CollectionId: ...
    @property
    def errors(self) -> CollectionId: ...
    @property
    def generation(self) -> int: ...
    @property
    def hash_version(self) -> int:
        """The version of the row hash that its collections were created with."""
        ...

    @property
    def left_out(self) -> Snapshot | None:
        """The snapshot that it has begun with, where what that has is left out of the ticks that are written next."""
        ...


class LeaseStore(Protocol):
    """A claim that can be taken, kept and given back."""

    def lease(self) -> Lease: ...

    def claim(self, job_id: JobId, *, stood_still: Lease | None = None) -> Holder: ...

    def beat(self, holder: Holder) -> None: ...

    def release(self, holder: Holder) -> None: ...


class WriterStore(Protocol):
    """What a writer of collections has to know of the log."""

    def collections(self) -> Sequence[CollectionId]:
        """All collections that the writer is responsible for, except those of dropped tables."""
        ...

    def knows(self, mz_timestamp: int) -> bool:
        """Is there a tick of this time in the log?"""
        ...

    def last_written(self) -> Mapping[CollectionId, int]:
        """Per collection, the ``mz_timestamp`` of its last commit that the log knows."""
        ...

    def advance_since(self, holder: Holder) -> None:
        """Move ``since`` as the tables' retention says."""
        ...

    def note_damage(self, collection_id: CollectionId, problem: str) -> None:
        """Mark a collection as damaged, for whoever looks at its table."""
        ...


class EndStore(Protocol):
    """What is kept of the upstream's ends while there are keyed tables (``tombstones``). Any app may note one."""

    def see_end(self, end: Position, *, ago_ms: int, kept_ms: int | None, lag_ms: int) -> Mapping[ItemId, str]:
        """Note where the upstream ends. Keyed tables that may have missed a delete are stalled: which, and why.

        :param ago_ms: how long ago the upstream was asked, at most.
        :param kept_ms: for how long it keeps tombstones; None: it does not compact.
        :param lag_ms: how old records are before it compacts them.
        """
        ...


class TickStore(LeaseStore, WriterStore, EndStore, Protocol):
    """One source's log. Each call is one transaction behind the source's lock; none is repeated blindly."""

    def load(self) -> SourceState: ...

    def settings(self) -> SourceSettings: ...

    def members(self, tick: int | None = None) -> Sequence[Member]:
        """The members of the pending tick (or of the next, once it is minted), with all a writer needs.

        :param tick: whose specs they have; that one's, unless another is named.
        """
        ...

    def generations(self, wanted: Collection[Generation]) -> Sequence[Member]:
        """These tables in these generations, those that are not members yet included."""
        ...

    def mint(
        self,
        holder: Holder,
        *,
        lower: Position,
        upper: Position,
        incarnation: str,
        indexed: Collection[Generation] | None = None,
    ) -> Tick:
        """:param indexed: see ``rules.may_come_in``."""
        ...

    def mint_empty(
        self, holder: Holder, *, at: Position, incarnation: str, indexed: Collection[Generation] | None = None
    ) -> Tick:
        """Mint and commit ``[at, at)`` in one transaction."""
        ...

    def begin_attempt(self, holder: Holder, number: int) -> Tick: ...

    def spare_attempt(self, holder: Holder, number: int) -> None:
        """Do not count the last execution: it failed because of the storage, not because of a member."""
        ...

    def suspect(self, holder: Holder, number: int, table_id: ItemId | None) -> None: ...

    def commit(
        self, holder: Holder, number: int, outcomes: Mapping[ItemId, Outcome], stats: Mapping[str, float]
    ) -> None: ...

    def note_end(self, end: Position) -> None:
        """Where the upstream ends now. For people alone: nothing is decided upon it."""
        ...

    def stall(self, holder: Holder, reason: str, message: str) -> None:
        """The source itself stops: its upstream or its catalog is not what the log says."""
        ...


@dataclass(frozen=True)
class Reading:
    """How far a group has been read: its first tick, its tables, and the number of records."""

    first: int
    tables: frozenset[ItemId]
    records: int


class BackfillStore(LeaseStore, WriterStore, EndStore, Protocol):
    """One backfill's part of a source's log. The lease is the backfill's own."""

    def load(self) -> SourceState: ...

    def settings(self) -> SourceSettings: ...

    def ticks(self, first: int, limit: int) -> Sequence[Tick]:
        """From number ``first`` on, oldest first, committed or only minted: their ranges are final."""
        ...

    def spec_changes(self, table_ids: Collection[ItemId]) -> Mapping[ItemId, Sequence[int]]:
        """The first ticks of the versions of each table's spec (see ``spec_versions``)."""
        ...

    def members(self, table_ids: Collection[ItemId], tick: int | None = None) -> Sequence[Member]:
        """Tables of this backfill, each in the generation that is being filled and with its spec of a tick."""
        ...

    def check_planned(self, holder: Holder, planned: Collection[Generation]) -> None:
        """Asked after what the collections of these tables hold was loaded, and before a group that was planned upon it
        is put: see ``backfill_rules.check_planned``."""
        ...

    def follow(
        self,
        holder: Holder,
        *,
        first: int,
        last: Tick,
        outcomes: Mapping[ItemId, Outcome],
        stats: Mapping[str, float],
        end: Position | None = None,
    ) -> Followed:
        """Note that the ticks ``first`` to ``last`` were written for some tables, or could not be.

        :param end: where a compacted upstream ended after they were read, if they were read late.
        """
        ...

    def take_snapshot(self, holder: Holder, snapshot: Snapshot, expected: Mapping[ItemId, int]) -> Collection[ItemId]:
        """The tables that this snapshot may be read for, of those that it was taken for.

        :param expected: how many rows each has, roughly.
        """
        ...

    def land_snapshots(
        self, holder: Holder, outcomes: Mapping[ItemId, Landed | Left], stats: Mapping[str, float]
    ) -> Followed:
        """Note which snapshots were found in the collections of some tables, and which tables cannot be read."""
        ...

    def note_snapshot_read(self, holder: Holder, snapshot_id: SnapshotId, read: Mapping[ItemId, int]) -> None:
        """How many rows were read so far. For people alone: nothing is decided upon it."""
        ...

    def begin_reads(self, table_ids: Collection[ItemId]) -> None:
        """The first read for some keyed tables is about to begin."""
        ...

    def note_reading(self, holder: Holder, reading: Reading) -> None:
        """How far a group has been read. For people alone: nothing is decided upon it."""
        ...
