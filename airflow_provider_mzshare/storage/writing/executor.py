"""Executes a group of ticks: one pass, a Spark job, writes every member's files; then their collections are committed.

It decides nothing about the log; it returns how each member ended.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector

from airflow_provider_mzshare.connectors.base import THIN_BYTES, Parts, Reader
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Holder, Outcome
from airflow_provider_mzshare.core.ticklog.stores import Member, WriterStore
from airflow_provider_mzshare.errors import (
    CatalogBehind,
    CatalogUnreachable,
    Fenced,
    GroupTooShort,
    LogConflict,
    MzShareError,
    PlanAgain,
    TransientError,
)
from airflow_provider_mzshare.storage.collections.damage import DamagedCollection, told
from airflow_provider_mzshare.storage.collections.durability import sync_filesystem
from airflow_provider_mzshare.storage.collections.faults import StorageFault, warehouse_fault
from airflow_provider_mzshare.storage.collections.log import open_filesystem
from airflow_provider_mzshare.storage.crashpoints import Crashed, crashpoint
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.received import received
from airflow_provider_mzshare.storage.fanout.results import MemberResult, merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.writing.dues import Due
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.machine import Machine, short_reason
from airflow_provider_mzshare.storage.writing.member_commits import MemberCommits
from airflow_provider_mzshare.storage.writing.passes import run_pass
from airflow_provider_mzshare.storage.writing.read_progress import Pass, counted_pass
from airflow_provider_mzshare.storage.writing.settling import Lanes
from airflow_provider_mzshare.storage.writing.writers import GroupCommits, TickCommits

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from airflow_provider_mzshare.storage.writing.passes import Source

    Records: TypeAlias = Iterator[pa.RecordBatch]

log = logging.getLogger(__name__)

RECORDS_PER_TASK = 100_000
PARTITIONS_PER_TASK = 100
"""A group is split into as few tasks, and so files per table, as its size allows; each reads partition by partition."""

COMMIT_THREADS = 8

NOBODYS_FAULT = (
    Fenced,
    LogConflict,
    CatalogBehind,
    CatalogUnreachable,
    GroupTooShort,
    PlanAgain,
    StorageFault,
    Crashed,
)
"""Errors that end the whole attempt, whichever member they occur for: no table is to blame."""


class MemberFailed(TransientError):
    """Some members could not be written; the others hold the group. Trying again may help."""

    def __init__(self, failures: Mapping[ItemId, str]) -> None:
        self.failures = dict(failures)
        super().__init__("; ".join(f"{table}: {reason}" for table, reason in failures.items()))


@dataclass
class Executed:
    """How the members of a group ended, which of them failed, and statistics."""

    outcomes: dict[ItemId, Outcome] = field(default_factory=dict)
    failures: dict[ItemId, str] = field(default_factory=dict)
    stats: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Read:
    """What was read without Spark, and in how many milliseconds."""

    records: Records
    ms: int


class TickExecutor:
    """:param root: the warehouse.
    :param check_identity: raises when the upstream is no longer the one the ticks were minted from.
    :param reader: ways to the records of a range without Spark, where it cannot read them or would take long.
    :param states: what the app knows of rows that change.
    :param lanes: how many lanes the upstream has now; rarely asked.
    :param driver_reads: whether small ranges may be read without Spark.
    :param backfill: groups are committed on top of what each collection holds by then, and their passes are counted for
        those who look how far one is; else each tick on its own.
    :param commits: another way to commit groups, of which somebody looks how far one is.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: WriterStore,
        holder: Holder,
        *,
        source_id: ItemId,
        root: str,
        check_identity: Callable[[], None],
        reader: Reader,
        states: KeyStates,
        lanes: Lanes,
        driver_reads: Callable[[], bool],
        backfill: bool = False,
        commits: type[MemberCommits] | None = None,
    ) -> None:
        self._spark, self._holder, self._source_id, self._root = spark, holder, source_id, root
        self._check_identity, self._reader, self._driver_reads = check_identity, reader, driver_reads
        self._store, self._states, self.machine = store, states, Machine(spark, root)
        self._counts = self.machine.scratch if backfill or commits else None
        kind = commits or (GroupCommits if backfill else TickCommits)
        self._commits: MemberCommits = kind(
            store,
            holder,
            source_id=source_id,
            root=root,
            place=reader.place,
            states=states,
            lanes=lanes,
        )
        self._name, self._passes = f"{holder.job_id}-{secrets.token_hex(3)}", 0
        """Of its passes: an app may have several executors."""
        self._running: Pass | None = None
        self._record_bytes = 0.0
        """The mean of the last pass; of the next one nothing else is known."""
        self._pool = ThreadPoolExecutor(COMMIT_THREADS, thread_name_prefix="mzshare-commit")

    def close(self) -> None:
        self._pool.shutdown()
        self._commits.close()

    def check_log(self) -> None:
        self._commits.check_log()

    def open(self, members: Sequence[Member]) -> None:
        """Make the collections of new members, so that a table without rows can be read. A failure here is ignored: it
        occurs again in the table's first tick."""
        with suppress(MzShareError):
            self._commits.recall(members)
            for member in members:
                with suppress(MzShareError):
                    self._commits.open(member)

    def keep(self, members: Sequence[Member]) -> None:
        """These are all members that there are now, not only those of a group."""
        self._commits.keep(members)

    def compact_all(self) -> None:
        self._commits.compact_all()

    def tidy(self) -> None:
        self._commits.tidy()

    def records_read(self) -> int:
        """Records read by the pass that runs now. Any thread may ask."""
        running = self._running
        return running.records_read() if running else 0

    def tasks(self, group: TickGroup) -> int:
        """Into how many tasks the pass over a group is split. A bounded read should have as many partitions."""
        return self._tasks(group.records, group.partitions)

    def _tasks(self, records: int, partitions: int) -> int:
        records //= self._reader.place.per_record
        wanted = max(-(-records // RECORDS_PER_TASK), -(-partitions // PARTITIONS_PER_TASK))
        return max(1, min(self._spark.sparkContext.defaultParallelism, wanted))

    def parts(self, lower: Position, upper: Position) -> Parts | None:
        """What tasks read by themselves, if they may and can; None where Spark's source reads."""
        if not self._driver_reads():
            return None
        partitions = sum(lower[partition] < upper[partition] for partition in upper)
        return self._reader.parts(lower, upper, self._tasks(upper.gap(lower), partitions))

    def read_thin(self, lower: Position, upper: Position) -> Read | None:
        """The records of a range without Spark, if the driver may do this and has less to do than Spark."""
        if not self._driver_reads() or upper.gap(lower) * self._record_bytes > THIN_BYTES:
            return None
        began = time.monotonic()
        records = self._reader.read_thin(lower, upper)
        return None if records is None else Read(records, round((time.monotonic() - began) * 1000))

    def execute(
        self,
        group: TickGroup,
        members: Sequence[Member],
        read: Callable[[], Source | None],
        already: Read | Source | None = None,
    ) -> Executed:
        """Write and commit ``group`` for ``members``; MemberFailed when some of them could not be written.

        StorageFault when the storage caused the failure: then no member has failed, and no attempt is counted.

        ``read`` is called only if Spark must read: a replay that finds everything done needs no upstream.

        :param already: the records of the group, if they are here; or a batch of Spark's that has them.
        """
        try:
            return self._execute(group, members, read, already)
        except MzShareError:
            raise
        except Exception as error:
            self.machine.check_alive()
            if ours := self.machine.storage_fault(error):
                raise ours from error
            raise

    def _execute(
        self,
        group: TickGroup,
        members: Sequence[Member],
        read: Callable[[], Source | None],
        already: Read | Source | None,
    ) -> Executed:
        began, written_at = time.monotonic(), time.time()
        result = Executed()
        todo = self._prepare(group, members, result)
        files: Mapping[str, MemberResult] = {}
        source = None
        if todo and not self._is_empty(group):
            source = already if already is not None else self.read_thin(group.lower, group.upper) or read()
        if source is not None:
            files = self._write(group, todo, source, result)
            # No log entry may name a file that a power cut empties.
            passed = time.monotonic()
            sync_filesystem(self._root)
            result.stats["sync_ms"] = round((time.monotonic() - passed) * 1000)
        crashpoint("files_written")
        self._check_identity()
        written = time.monotonic()
        self._commit_all(group, todo, files, written_at, result)
        if result.failures:
            raise MemberFailed(result.failures)
        crashpoint("all_committed")
        # The catalog must not know more than the disk.
        sync_filesystem(self._root)
        result.stats["write_ms"] = round((written - began) * 1000)
        result.stats["commit_ms"] = round((time.monotonic() - written) * 1000)
        if on_disk := self._states.on_disk:
            result.stats["indexes_on_disk"] = on_disk
        return result

    def _is_empty(self, group: TickGroup) -> bool:
        return group.lower == group.upper

    def _prepare(self, group: TickGroup, members: Sequence[Member], result: Executed) -> list[Due]:
        """Open the collections; members that hold the group already need no second write."""
        self._commits.begin(group, members)
        todo: list[Due] = []
        for member in members:
            try:
                due = self._commits.due(group, member)
            except Exception as error:  # any error here belongs to this member
                if ending := self._nobodys(error):
                    raise ending from error
                result.failures[member.table_id] = self._reason(error)
                continue
            if isinstance(due, Due):
                todo.append(due)
            else:
                result.outcomes[member.table_id] = due
        return todo

    def _write(
        self, group: TickGroup, todo: Sequence[Due], source: Read | Source, result: Executed
    ) -> Mapping[str, MemberResult]:
        """The one pass over the group's records, by at most one Spark job."""
        members = tuple(due.plan for due in todo)
        context = self._spark.sparkContext
        self._passes += 1
        name = f"{self._name}-tick-{group.number}-{self._passes}"
        with counted_pass(context, name, self._counts) as running:
            plan = FanoutPlan(group.first.number, members, group.ends(), secrets.token_hex(6), running.counts)
            self._running = running
            try:
                rows = self._pass_over(group, plan, source, name, result)
            finally:
                self._running = None
        result.stats["records"], result.stats["partitions"] = group.records, group.partitions
        result.stats["files"] = sum(1 for row in rows if row["path"])
        read = received(rows)
        result.stats["messages"], result.stats["bytes"] = read.messages, read.bytes
        self._record_bytes = read.bytes / max(1, group.records)
        found = merge_results(rows)
        return {due.plan.table_id: replace(found.get(due.plan.table_id, MemberResult()), received=read) for due in todo}

    def _pass_over(
        self, group: TickGroup, plan: FanoutPlan, source: Read | Source, name: str, result: Executed
    ) -> list[dict[str, Any]]:
        """In Spark; or in this process, if that is much faster, or if a record makes every read by Spark fail."""
        write = partial(write_partition, plan_json=plan.to_json())
        result.stats["spark_jobs"] = 0
        if isinstance(source, Read):
            records, result.stats["read_ms"] = source.records, source.ms
        else:
            context = self._spark.sparkContext
            context.setJobGroup(name, "{} ticks {} to {}".format(*self._names(group)))
            found = self._by_spark(group, plan, source)
            result.stats["spark_jobs"] = len(context.statusTracker().getJobIdsForGroup(name))
            if not isinstance(found, Iterator):
                return found
            records = found
        result.stats["apart"] = 1
        return [row for batch in write(records) for row in batch.to_pylist()]

    def _by_spark(self, group: TickGroup, plan: FanoutPlan, source: Source) -> list[dict[str, Any]] | Records:
        """The rows of the pass; or records, if one of them makes every read by Spark fail."""
        try:
            return run_pass(self._spark, source, plan, self.tasks(group))
        except Exception as error:
            sweep(plan)
            records = self._reader.read_apart(error, group.lower, group.upper)
            if records is None:
                raise
        log.warning(
            "%s: Spark cannot read a record of ticks %s to %s; mzshare reads them without Spark", *self._names(group)
        )
        return records

    def _names(self, group: TickGroup) -> tuple[ItemId, int, int]:
        return self._source_id, group.first.number, group.number

    def _commit_all(
        self,
        group: TickGroup,
        todo: Sequence[Due],
        files: Mapping[str, MemberResult],
        written_at: float,
        result: Executed,
    ) -> None:
        nothing = MemberResult()
        futures = {
            (table_id := due.member.table_id): self._pool.submit(
                self._commits.commit, group, due, files.get(table_id, nothing), written_at
            )
            for due in todo
        }
        ending: BaseException | None = None
        for table_id, future in futures.items():
            error = future.exception()
            if error is None:
                result.outcomes[table_id] = future.result()
            elif nobodys := self._nobodys(error):
                ending = ending or nobodys
            else:
                result.failures[table_id] = self._reason(error)
        if ending:
            raise ending

    def _reason(self, error: BaseException) -> str:
        """Why a member failed. A damaged collection is also marked in the catalog: a retry or RESUME does not help."""
        if isinstance(error, DamagedCollection):
            with suppress(MzShareError):
                self._store.note_damage(CollectionId(error.collection), told(error.named))
        return short_reason(error)

    def _nobodys(self, error: BaseException) -> BaseException | None:
        return error if isinstance(error, NOBODYS_FAULT) else warehouse_fault(self._root, error)


def sweep(plan: FanoutPlan) -> None:
    """Remove the files of a pass that failed: no commit will name them. Maintenance removes what is left."""
    for folder in {path for member in plan.members for path in member.folders.values()}:
        with suppress(OSError, DeltaError):
            files = open_filesystem(folder)
            for info in files.get_file_info(FileSelector("")):
                if info.path.startswith(plan.file_prefix):
                    files.delete_file(info.path)
