"""Executes one tick: one Spark job writes every member's files, then each member's collections are committed.

It decides nothing about the log; it returns how each member ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_mzshare.errors import (
    CatalogBehind,
    CatalogUnreachable,
    Fenced,
    JobFailed,
    MzShareError,
    TransientError,
    WarehouseUnreachable,
)
from airflow_provider_mzshare.storage.crashpoints import Crashed, crashpoint
from airflow_provider_mzshare.storage.durability import probe_storage, sync_filesystem
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.results import RESULT_DDL, MemberResult, merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.ingestion.members import MemberCommits
from airflow_provider_mzshare.storage.ticks.state import Holder, Outcome, Tick
from airflow_provider_mzshare.storage.ticks.store import Member, TickStore
from airflow_provider_mzshare.types.ids import ItemId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS_PER_TASK = 100_000
"""A tick is split into as few tasks, and so files per table, as its size allows."""

COMMIT_THREADS = 8

_EXCEPTION = re.compile(r"(?!pyspark\.|org\.apache\.spark\.)[\w.]+(Error|Exception|Exit)\b")


NOBODYS_FAULT = (Fenced, CatalogBehind, CatalogUnreachable, Crashed)
"""What ends the attempt as a whole, whichever member met it."""


class MemberFailed(TransientError):
    """Some members could not be written; the others hold the tick. Trying again may help."""

    def __init__(self, failures: Mapping[ItemId, str]) -> None:
        self.failures = dict(failures)
        super().__init__("; ".join(f"{table}: {reason}" for table, reason in failures.items()))


@dataclass
class Executed:
    """How the members of a tick ended, who failed, and what it cost."""

    outcomes: dict[ItemId, Outcome] = field(default_factory=dict)
    failures: dict[ItemId, str] = field(default_factory=dict)
    stats: dict[str, float] = field(default_factory=dict)


class TickExecutor:
    """:param root: the warehouse.
    :param check_identity: raises when the upstream is no longer the one the tick was minted from.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: TickStore,
        holder: Holder,
        *,
        source_id: ItemId,
        root: str,
        check_identity: Callable[[], None],
    ) -> None:
        self._spark, self._holder, self._source_id, self._root = spark, holder, source_id, root
        self._check_identity = check_identity
        self._commits = MemberCommits(store, holder, source_id=source_id, root=root)
        self._pool = ThreadPoolExecutor(COMMIT_THREADS, thread_name_prefix="mzshare-commit")

    def close(self) -> None:
        self._pool.shutdown()
        self._commits.close()

    def check_log(self) -> None:
        self._commits.check_log()

    def open(self, members: Sequence[Member]) -> None:
        """A table that joins without data is readable all the same; what fails here fails in its first tick again."""
        for member in members:
            with suppress(MzShareError):
                self._commits.open(member)

    def tidy(self) -> None:
        self._commits.tidy()

    def execute(self, tick: Tick, members: Sequence[Member], read: Callable[[], DataFrame | None]) -> Executed:
        """Write and commit ``tick`` for ``members``; MemberFailed when some of them could not be written.

        ``read`` is asked only when something must be read: a replay that finds everything done needs no upstream.
        """
        began, written_at = time.monotonic(), time.time()
        result = Executed()
        todo = self._prepare(tick, members, result)
        files: Mapping[str, MemberResult] = {}
        frame = read() if todo and tick.lower != tick.upper else None
        if frame is not None:
            files = self._write(tick, todo, frame, result)
            # No log entry may name a file that a power cut empties.
            passed = time.monotonic()
            sync_filesystem(self._root)
            result.stats["sync_ms"] = round((time.monotonic() - passed) * 1000)
        crashpoint("files_written")
        self._check_identity()
        written = time.monotonic()
        self._commit_all(tick, todo, files, written_at, result)
        if result.failures:
            raise MemberFailed(result.failures)
        crashpoint("all_committed")
        # The catalog must not know more than the disk.
        sync_filesystem(self._root)
        result.stats["write_ms"] = round((written - began) * 1000)
        result.stats["commit_ms"] = round((time.monotonic() - written) * 1000)
        return result

    def _prepare(self, tick: Tick, members: Sequence[Member], result: Executed) -> list[Member]:
        """Open the collections; in a replay, members that hold the tick already need no second write."""
        self._commits.note_known(tick.mz_timestamp)
        todo: list[Member] = []
        for member in members:
            try:
                self._commits.open(member)
                held = self._commits.held(tick, member) if tick.attempts > 1 or tick.repaired else None
            except NOBODYS_FAULT:
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, it is this member's
                result.failures[member.table_id] = short_reason(error)
                continue
            if held:
                result.outcomes[member.table_id] = held
            else:
                todo.append(member)
        return todo

    def _write(
        self, tick: Tick, members: Sequence[Member], frame: DataFrame, result: Executed
    ) -> Mapping[str, MemberResult]:
        """The one Spark job of the tick."""
        plan = FanoutPlan(tick=tick.number, members=tuple(self._commits.plan(m) for m in members))
        context = self._spark.sparkContext
        records = tick.upper.gap(tick.lower)
        tasks = max(1, min(context.defaultParallelism, -(-records // RECORDS_PER_TASK)))
        group = f"{self._holder.job_id}-tick-{tick.number}-{tick.attempts}"
        context.setJobGroup(group, f"{self._source_id} tick {tick.number}")
        pass_over = partial(write_partition, plan_json=plan.to_json())
        rows = frame.coalesce(tasks).mapInArrow(pass_over, RESULT_DDL).collect()
        result.stats["records"] = records
        result.stats["spark_jobs"] = len(context.statusTracker().getJobIdsForGroup(group))
        result.stats["files"] = sum(1 for row in rows if row["path"])
        return merge_results(row.asDict() for row in rows)

    def _commit_all(
        self,
        tick: Tick,
        members: Sequence[Member],
        files: Mapping[str, MemberResult],
        written_at: float,
        result: Executed,
    ) -> None:
        nothing = MemberResult()
        futures = {
            member.table_id: self._pool.submit(
                self._commits.commit, tick, member, files.get(member.table_id, nothing), written_at
            )
            for member in members
        }
        ending: BaseException | None = None
        for table_id, future in futures.items():
            error = future.exception()
            if error is None:
                result.outcomes[table_id] = future.result()
            elif isinstance(error, NOBODYS_FAULT):
                ending = ending or error
            else:
                result.failures[table_id] = short_reason(error)
        if ending:
            raise ending

    # ── whose fault is it? ────────────────────────────────────────────────────────────────────────────────────────────

    def check_alive(self) -> None:
        """Raise when Spark itself is gone: only a new process helps then."""
        try:
            stopped = self._spark.sparkContext._jsc.sc().isStopped()
        except Exception as error:
            raise JobFailed(f"Spark is gone: {short_reason(error)}") from error
        if stopped:
            raise JobFailed("Spark has stopped")

    def check_warehouse(self) -> None:
        """Raise when the warehouse as a whole takes no files: a full disk or a lost mount is no table's fault."""
        try:
            probe_storage(self._root)
        except OSError as error:
            raise WarehouseUnreachable("the warehouse", f"it takes no files: {error}") from error

    def check_pass(self, frame: DataFrame | None) -> None:
        """Raise when the same read fails for no table at all: then the machinery is broken, not a table."""
        if frame is None:
            return
        pass_over = partial(write_partition, plan_json=FanoutPlan(tick=0, members=()).to_json())
        try:
            frame.mapInArrow(pass_over, RESULT_DDL).collect()
        except Exception as error:
            raise JobFailed(f"the pass over the records fails for every table: {short_reason(error)}") from error


def short_reason(error: BaseException) -> str:
    """One line. Of a Python worker's traceback the last line says what happened."""
    if isinstance(error, MzShareError):
        return error.line
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[0] if lines else "")
    return f"{type(error).__name__}: {told}"[:500]
