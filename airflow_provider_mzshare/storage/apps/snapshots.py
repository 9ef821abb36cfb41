"""The step of a backfill before all ticks: the tables that begin with a snapshot of the upstream get theirs.

Each step does one thing and ends; what there is to do is seen from the collections and the log, so that a step after a
crash does what the dead one would have done.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.base import Keeper, Reader, SnapshotConnector, SnapshotTaken, Upstream
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, SnapshotId, new_snapshot_id
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import snapshots
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import Holder, Left, Snapshot, SourceState, TableState, Tick
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, Member
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.writing.executor import MemberFailed
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.snapshots import Read, SnapshotExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

ATTEMPTS = 10
"""After this many failures in a row a table is given up. Another snapshot is taken each time."""
POLL_SECONDS = 0.2
FLUSH_SECONDS = 0.05


@dataclass(frozen=True)
class SnapshotReading:
    """How many rows of a snapshot were read so far, for people."""

    snapshot_id: SnapshotId
    read: Mapping[ItemId, int]


class Beginnings:
    """:param tell: what it waits for, and None when it goes on. :param stop: asked while it waits."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        store: BackfillStore,
        upstream: Upstream,
        connector: SnapshotConnector,
        reader: Reader,
        states: KeyStates,
        holder: Holder,
        source_id: ItemId,
        backfill_id: BackfillId,
        root: str,
        tell: Callable[[str | None], None],
        stop: Callable[[], bool],
    ) -> None:
        self._store, self._holder, self._backfill_id = store, holder, backfill_id
        self._snapshots, self._lane = connector.snapshots(), reader.place.only_lane
        self._tell, self._stop = tell, stop
        identity = store.load().incarnation
        self._executor = SnapshotExecutor(
            spark,
            store,
            holder,
            source_id=source_id,
            root=root,
            reader=reader,
            states=states,
            check_identity=lambda: upstream.check_identity(identity),
        )
        self._failures: Counter[ItemId] = Counter()
        self._one_by_one = False
        """One of the tables cannot be read upstream: it is found by looking at each alone."""
        self._now: tuple[Snapshot, Mapping[ItemId, int]] | None = None
        self.done = 0
        self.left: str | None = None

    def close(self) -> None:
        self._executor.close()

    def step(self, state: SourceState, waiting: Mapping[ItemId, TableState]) -> float:
        """Returns how long to wait before the next one."""
        if landed := self._executor.landed(self._store.members(waiting)):
            self._land(landed)
            return 0.0
        tick = snapshots.base_tick(state)
        if tick is None:
            self._tell("it waits for the first tick of its source")
            return POLL_SECONDS
        # Their rows are of this tick: so is the spec that they are made with.
        members = self._store.members(waiting, tick.number)
        if self._one_by_one:
            members = members[:1]
        try:
            self._read(tick, members)
        except UpstreamChanged as error:
            if len(members) == 1:
                self._land({members[0].table_id: Left(error.line)})
            self._one_by_one = len(members) > 1
        except MemberFailed as error:
            self._give_up(error)
        return 0.0

    def _land(self, outcomes: Mapping[ItemId, Landed | Left]) -> None:
        for table_id, outcome in outcomes.items():
            if isinstance(outcome, Left):
                self.left = outcome.reason
                log.error("%s: %s stalled: %s", self._backfill_id, table_id, outcome.reason)
            else:
                log.info("%s: %s begins with snapshot %s", self._backfill_id, table_id, outcome.snapshot.snapshot_id)
            self._failures.pop(table_id, None)
        self._store.land_snapshots(self._holder, outcomes, {})
        crashpoint("snapshot_noted")
        self.done += 1
        self._tell(None)

    def _give_up(self, error: MemberFailed) -> None:
        """A table whose rows cannot be had is given up after many snapshots; the others have theirs by then."""
        self._failures.update(error.failures.keys())
        tired = {table_id for table_id in error.failures if self._failures[table_id] >= ATTEMPTS}
        if not tired:
            raise error
        self._executor.machine.check_warehouse()
        self._land({table_id: Left(error.failures[table_id]) for table_id in tired})

    # ── one snapshot ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, tick: Tick, members: Sequence[Member]) -> None:
        """For all of these tables. Its place in the log is known before any transaction is waited for."""
        references: dict[str, list[ItemId]] = defaultdict(list)
        for member in members:
            details = member.spec.details
            references[details.stream_reference if details else ""].append(member.table_id)
        p = tick.upper[self._lane]
        keeper = self._snapshots.take(list(references), p, waits=self._tell, stop=self._stop)
        if keeper is None:
            return
        with closing(keeper):
            self._tell(None)
            snapshot = self._as_noted(tick, keeper.taken)
            expected = _expected(keeper.taken, references)
            mine = self._store.take_snapshot(self._holder, snapshot, expected)
            crashpoint("snapshot_taken")
            self._now = snapshot, expected
            try:
                self._write(tick, [member for member in members if member.table_id in mine], snapshot, keeper)
            finally:
                self._now = None

    def _as_noted(self, tick: Tick, taken: SnapshotTaken) -> Snapshot:
        return Snapshot(
            new_snapshot_id(), tick.number, tick.mz_timestamp, tick.upper, Position({self._lane: taken.h}), taken.seen
        )

    def _write(self, tick: Tick, members: Sequence[Member], snapshot: Snapshot, keeper: Keeper) -> None:
        if not members:
            return
        read = Read(
            snapshot,
            keeper.taken.ranges,
            self._snapshots.range_reader(keeper.taken),
            keep=lambda: self._until_flushed(keeper),
        )
        executed = self._executor.write(tick, members, read)
        crashpoint("snapshot_committed")
        log.info("%s: snapshot %s: %s", self._backfill_id, snapshot.snapshot_id, executed.stats)
        left = {table_id: one for table_id, one in executed.outcomes.items() if isinstance(one, Left)}
        if left:
            self._land(left)

    def _until_flushed(self, keeper: Keeper) -> None:
        """What was read counts only if the snapshot was there until the end, and outlives a crash of the upstream."""
        crashpoint("snapshot_read")
        while not keeper.is_flushed():
            time.sleep(FLUSH_SECONDS)

    # ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def reading(self) -> SnapshotReading | None:
        """Any thread may ask. Tasks count rows of all tables together: they are shared out as they are expected."""
        now, rows = self._now, self._executor.records_read()
        if now is None or not rows:
            return None
        snapshot, expected = now
        total = sum(expected.values())
        read = {t: rows * count // total if total else rows // len(expected) for t, count in expected.items()}
        return SnapshotReading(snapshot.snapshot_id, read)


def _expected(taken: SnapshotTaken, references: Mapping[str, Sequence[ItemId]]) -> dict[ItemId, int]:
    rows: Counter[str] = Counter()
    for each in taken.ranges:
        rows[each.reference] += each.rows
    return {table_id: rows[reference] for reference, tables in references.items() for table_id in tables}
