"""Executes groups of ticks for the tables of a backfill, and notes in the log how each table ended."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.base import Reader, Upstream
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.backfill_rules import Followed, arriving
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Holder, Left, Outcome
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, Member, Reading
from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.storage.apps.backfill_steps import rearmost
from airflow_provider_mzshare.storage.apps.what_is_left import WhatIsLeft
from airflow_provider_mzshare.storage.writing.executor import Executed, MemberFailed, TickExecutor
from airflow_provider_mzshare.storage.writing.fault_finding import execute_one
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.machine import short_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_mzshare.storage.writing.passes import Source

log = logging.getLogger(__name__)

_ORIGIN = Position()

ATTEMPTS = 3
"""After this many failures in a row a table is given up, if other tables could be written meanwhile."""
PATIENCE = 10
"""The same if no other table was written: then the cause may be something that all tables share."""


@dataclass
class _Failures:
    """The failures of one table since it was last written."""

    count: int = 0
    others_fine: bool = False


class Groups:
    """:param backfill_id: the backfill whose tables are written. :param root: the warehouse."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        store: BackfillStore,
        upstream: Upstream,
        reader: Reader,
        states: KeyStates,
        holder: Holder,
        source_id: ItemId,
        backfill_id: BackfillId,
        root: str,
    ) -> None:
        self._store, self._upstream, self._holder = store, upstream, holder
        self._reader, self._backfill_id = WhatIsLeft(reader), backfill_id
        self._identity = store.load().incarnation
        self._executor = TickExecutor(
            spark,
            store,
            holder,
            source_id=source_id,
            root=root,
            states=states,
            check_identity=lambda: upstream.check_identity(self._identity),
            lanes=lambda: len(upstream.describe().partitions),
            reader=self._reader,
            driver_reads=lambda: store.settings().driver_reads,
            backfill=True,
        )
        self._failures: dict[ItemId, _Failures] = defaultdict(_Failures)
        self._group: TickGroup | None = None
        """The last group that was executed, for a diagnosis."""
        self._reads: tuple[TickGroup, frozenset[ItemId]] | None = None
        """The group that is executed now, and its tables."""
        self._asks_end = False
        self._broken = 0
        """How often in a row a whole group failed. From ATTEMPTS on, tables are executed one by one."""
        self.done = 0
        self.left: str | None = None
        """Why a table was given up; the last one, if there were several."""

    def close(self) -> None:
        self._executor.close()

    def keep(self, members: Sequence[Member]) -> None:
        """These are all tables of the backfill, not only those of a group."""
        self._executor.keep(members)

    def check_log(self) -> None:
        self._executor.check_log()

    def diagnose(self, error: Exception) -> MzShareError:
        """Explain an error of a library: is Spark gone, is it another upstream, or may another attempt succeed?"""
        self._executor.machine.check_alive()
        self._upstream.check_identity(self._identity)
        if self._group is not None:
            self._upstream.check_history(self._group.lower.join(self._reader.gone))
        return self._executor.machine.storage_fault(error) or TransientError(short_reason(error))

    # ── one group ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def execute(
        self, group: TickGroup, members: Sequence[Member], *, asks_end: bool = False, gone: Position = _ORIGIN
    ) -> None:
        """Write the group for all members, and record it in the log. Members that fail keep their position.

        :param asks_end: the upstream compacts and the group is read late: what was there depends on its end by then.
        :param gone: what is before it is gone upstream, and left out.
        """
        self._group, began = group, time.monotonic()
        self._asks_end, self._reader.gone = asks_end, gone
        self._reads = group, frozenset(member.table_id for member in members)
        try:
            if self._broken >= ATTEMPTS:
                executed = self._one_by_one(group, members)
            else:
                executed = self._executor.execute(group, members, lambda: self._read(group))
        except MemberFailed as error:
            failed = self._without(error.failures, group, members, began)
            if failed:
                raise MemberFailed(failed) from error
            return
        except MzShareError:
            raise
        except Exception:
            self._broken += 1
            raise
        finally:
            self._reads = None
        self._follow(group, executed, began)

    def reading(self) -> Reading | None:
        """How far the group that is executed has been read; any thread may ask."""
        reads, records = self._reads, self._executor.records_read()
        if reads is None or not records:
            return None
        group, tables = reads
        return Reading(group.first.number, tables, min(records, group.records))

    def _read(self, group: TickGroup) -> Source | None:
        self._upstream.check_history(group.lower.join(self._reader.gone))
        parts = self._executor.parts(group.lower, group.upper)
        return parts or self._reader.bounded(group.lower, group.upper, tasks=self._executor.tasks(group))

    def _without(
        self, failures: Mapping[ItemId, str], group: TickGroup, members: Sequence[Member], began: float
    ) -> dict[ItemId, str]:
        """Write the group for the members that did not fail. Returns the failures that are worth another attempt."""
        others = [member for member in members if member.table_id not in failures]
        if others:
            self._follow(group, self._executor.execute(group, others, lambda: self._read(group)), began)
        worth_it: dict[ItemId, str] = {}
        for table_id, reason in failures.items():
            found = self._failures[table_id]
            found.count += 1
            found.others_fine = found.others_fine or bool(others)
            if found.count < (ATTEMPTS if found.others_fine else PATIENCE):
                worth_it[table_id] = reason
                continue
            self._executor.machine.check_warehouse()
            self._follow(group, Executed({table_id: Left(reason)}), began)
        return worth_it

    def _one_by_one(self, group: TickGroup, members: Sequence[Member]) -> Executed:
        """Each table alone, so that a table that breaks the whole pass does not stop the others."""
        outcomes: dict[ItemId, Outcome] = {}
        failed: dict[ItemId, str] = {}
        for member in members:
            try:
                outcomes[member.table_id] = execute_one(
                    self._executor, group, member, lambda: self._read(group), self.diagnose
                )
            except MemberFailed as error:
                failed |= error.failures
        if failed:
            raise MemberFailed(failed)
        return Executed(outcomes)

    def _follow(self, group: TickGroup, executed: Executed, began: float) -> None:
        stats = {**executed.stats, "busy_ms": round((time.monotonic() - began) * 1000)}
        followed = self._store.follow(
            self._holder,
            first=group.first.number,
            last=group.last,
            outcomes=executed.outcomes,
            stats=stats,
            end=self._upstream.end_offsets() if self._asks_end else None,
        )
        self._note(executed.outcomes | _stalled(followed))
        log.info(
            "%s ticks %s to %s of %s: %s",
            self._holder.job_id,
            group.first.number,
            group.number,
            self._backfill_id,
            stats,
        )
        if followed.gone:
            log.info("%s goes on without %s", self._backfill_id, ", ".join(sorted(followed.gone)))
        self.done += 1
        self._broken = 0
        self._executor.tidy()

    def _note(self, outcomes: Mapping[ItemId, Outcome]) -> None:
        for table_id, outcome in outcomes.items():
            self._failures.pop(table_id, None)
            if isinstance(outcome, Left):
                self.left = outcome.reason
                log.error("%s: %s stalled: %s", self._backfill_id, table_id, outcome.reason)

    # ── giving up ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def leave(self, reason: str, *, only_rearmost: bool) -> bool:
        """Stall the tables of this backfill, or those that are furthest behind; True when none is left."""
        state = self._store.load()
        newest = state.pending[-1] if state.pending else state.last
        tables = arriving(state, self._backfill_id)
        while tables and newest is not None:
            behind = rearmost(tables)
            outcomes: dict[ItemId, Outcome] = {table_id: Left(reason) for table_id in behind.table_ids}
            self._store.follow(self._holder, first=behind.first, last=newest, outcomes=outcomes, stats={})
            self._note(outcomes)
            tables = {table_id: table for table_id, table in tables.items() if table_id not in outcomes}
            if only_rearmost:
                break
        return not tables


def _stalled(followed: Followed) -> dict[ItemId, Outcome]:
    """Tables that the log has given up, whatever was written for them."""
    found = followed.tables.items()
    return {table_id: Left(table.reason or "") for table_id, table in found if table.status == "stalled"}
