"""Writes the rows of a snapshot: one pass over its parts, and one commit to each table's data, the first that it gets.

The commit says which snapshot it is. Whoever looks later finds that there, whatever became of the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.connectors.base import Parts, RangeReader, Reader, SnapshotRange
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import Holder, Left, Outcome, Snapshot, Tick
from airflow_provider_mzshare.core.ticklog.stores import Member, WriterStore
from airflow_provider_mzshare.errors import BadCollection
from airflow_provider_mzshare.storage.collections.log import TickCommit
from airflow_provider_mzshare.storage.fanout.parts import PARTS_DDL, write_parts
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.results import RESULT_DDL, MemberResult
from airflow_provider_mzshare.storage.writing.dues import Due, own_files
from airflow_provider_mzshare.storage.writing.executor import Executed, TickExecutor, sweep
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.outcomes import done, written_as
from airflow_provider_mzshare.storage.writing.writers import GroupCommits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_mzshare.storage.writing.executor import Records
    from airflow_provider_mzshare.storage.writing.passes import Source

SNAPSHOT = "mz_snapshot"
"""What a log entry says of the snapshot whose rows it has."""


@dataclass(frozen=True)
class Read:
    """:param reader: of the parts, as the connector gives it for this snapshot.
    :param keep: raises unless what was read counts; it may wait for that.
    """

    snapshot: Snapshot
    ranges: Sequence[SnapshotRange]
    reader: RangeReader
    keep: Callable[[], None]


class SnapshotCommits(GroupCommits):
    """Commits the rows of one snapshot after the other."""

    snapshot: Snapshot | None = None

    def plan(self, member: Member, *, data_after: int = 0, errors_after: int = 0) -> MemberPlan:
        """All rows apply, and none may be an error row: rows and errors would be of two snapshots after a crash."""
        found = super().plan(member, data_after=data_after, errors_after=errors_after)
        return replace(found, stop_on_error=True, visible=None)

    def commit(self, group: TickGroup, due: Due, files: MemberResult, written_at: float) -> Outcome:
        if files.first_error_at and not files.error:
            self._discard(own_files(due, files, written_at))
            return Left(
                f"a row of its snapshot cannot be decoded: {files.first_error}. Name the column in TEXT COLUMNS, or "
                "correct the row upstream; then RESNAPSHOT or RESUME"
            )
        return super().commit(group, due, files, written_at)

    def _metadata(self, first: Tick, last: Tick, member: Member) -> dict[str, str]:
        found = super()._metadata(first, last, member)
        return found if self.snapshot is None else {**found, SNAPSHOT: self.snapshot.to_json()}

    def landed(self, member: Member) -> Landed | None:
        """The snapshot that a table begins with, if its rows are there; whoever has written them."""
        self.open(member)
        data = self._of_snapshots(member.data)
        if not data:
            if self._open[member.data].stored_version() is not None:
                raise BadCollection(member.data, "it has ticks, and no rows of a snapshot before them")
            return None
        snapshot = Snapshot.from_json(data[0].metadata[SNAPSHOT])
        both = ((member.errors, self._of_snapshots(member.errors)), (member.data, data))
        written = [written_as(name, one.version, one.metadata) for name, found in both for one in found]
        return Landed(snapshot, done(member, written))

    def _of_snapshots(self, collection_id: CollectionId) -> list[TickCommit]:
        """One in the data; those of runs that died before their data was there, too, in the errors."""
        collection = self._open[collection_id]
        if collection.stored_version() is None:
            return []
        return [commit for commit in collection.ticks_after(0) if SNAPSHOT in commit.metadata]


class SnapshotExecutor(TickExecutor):
    """Reads parts of a snapshot instead of a range of the log."""

    _commits: SnapshotCommits

    def __init__(
        self,
        spark: SparkSession,
        store: WriterStore,
        holder: Holder,
        *,
        source_id: ItemId,
        root: str,
        reader: Reader,
        states: KeyStates,
        check_identity: Callable[[], None],
    ) -> None:
        super().__init__(
            spark,
            store,
            holder,
            source_id=source_id,
            root=root,
            check_identity=self._check,
            reader=reader,
            states=states,
            lanes=lambda: 1,
            driver_reads=lambda: False,
            commits=SnapshotCommits,
        )
        self._check_upstream = check_identity
        self._read_now: Read | None = None

    def landed(self, members: Sequence[Member]) -> dict[ItemId, Landed]:
        self._commits.recall(members)
        found = {member.table_id: self._commits.landed(member) for member in members}
        return {table_id: landed for table_id, landed in found.items() if landed is not None}

    def write(self, tick: Tick, members: Sequence[Member], read: Read) -> Executed:
        """:param tick: the one after which the snapshot was taken."""
        with self._reading(read):
            return self.execute(TickGroup((tick,)), members, lambda: None, self._frame())

    @contextmanager
    def _reading(self, read: Read) -> Iterator[None]:
        self._read_now, self._commits.snapshot = read, read.snapshot
        try:
            yield
        finally:
            self._read_now, self._commits.snapshot = None, None

    def _check(self) -> None:
        """After the pass, before anything is committed."""
        self._check_upstream()
        if self._read_now is not None:
            self._read_now.keep()

    def _frame(self) -> DataFrame:
        """A row for each part. Spark makes as many tasks as there are cores, each of parts that lie side by side."""
        assert self._read_now is not None
        rows = [(each.reference, each.part) for each in self._read_now.ranges]
        return self._spark.createDataFrame(rows, PARTS_DDL)

    def _is_empty(self, group: TickGroup) -> bool:
        return False

    def _by_spark(self, group: TickGroup, plan: FanoutPlan, source: Source) -> list[dict[str, Any]] | Records:
        """A snapshot that cannot be read has no other way to be read."""
        assert self._read_now is not None
        assert not isinstance(source, Parts)
        write = partial(write_parts, read=self._read_now.reader, plan_json=plan.to_json())
        try:
            rows = source.mapInArrow(write, RESULT_DDL).collect()
        except BaseException:
            sweep(plan)
            raise
        return [row.asDict() for row in rows]
