"""Both apps without Spark, driven step by step: the same log, the same pass and the same commits, to any death."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.backfill_rules import arriving
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Done, Outcome, Tick
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.storage.apps.backfill_steps import cut_group, rearmost
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.received import received
from airflow_provider_mzshare.storage.fanout.results import MemberResult, merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.member_commits import MemberCommits
from airflow_provider_mzshare.storage.writing.writers import GroupCommits, TickCommits

Records = Callable[[Position, Position], Iterable[pa.RecordBatch]]
"""Those of a range of the source."""


def note_job(catalog: Catalog, job: str, source_id: ItemId, folder: str, **more: object) -> JobId:
    """A job that runs, somewhere."""
    job_id = JobId(job)
    kind = "backfill" if "backfill_id" in more else "ingest"
    with catalog.write() as session:
        jobs.create_job(
            session,
            kind=kind,
            source_id=source_id,
            launcher="process",
            folder=folder,
            job_id=job_id,
            **more,  # type: ignore[arg-type]
        )
        jobs.note_start(session, job_id, pid=1, pid_started=1.0, host="elsewhere")
        jobs.set_state(session, job_id, "running", expect={"starting"})
    return job_id


def execute(commits: MemberCommits, group: TickGroup, member: Member, records: Records) -> Outcome:
    """Plan, pass, commit: for one member."""
    commits.begin(group, [member])
    due = commits.due(group, member)
    if isinstance(due, Done):
        return due
    text = FanoutPlan(group.first.number, (due.plan,), group.ends()).to_json()
    rows = [
        row for batch in write_partition(iter(records(group.lower, group.upper)), text) for row in batch.to_pylist()
    ]
    found = replace(merge_results(rows).get(due.plan.table_id, MemberResult()), received=received(rows))
    return commits.commit(group, due, found, time.time())


def _keys(root: str, job: JobId, scratch: Path | None) -> Path:
    return Path(f"{root}-{job}-keys") if scratch is None else scratch / f"{job}-keys"


class DrivenIngestion:
    """Takes over whatever job holds the source: nobody's heart beats here.

    :param scratch: for its own files; None: beside the warehouse.
    """

    def __init__(
        self,
        catalog: Catalog,
        root: str,
        source_id: ItemId,
        records: Records,
        job: JobId,
        *,
        scratch: Path | None = None,
    ) -> None:
        self.store = CatalogTickStore(catalog, source_id)
        self._records, self.lanes = records, 1
        self.states = KeyStates(_keys(root, job, scratch))
        self._holder = self.store.claim(job, stood_still=self.store.lease())
        self.commits = TickCommits(
            self.store,
            self._holder,
            source_id=source_id,
            root=root,
            place=PARTITIONED,
            states=self.states,
            lanes=lambda: self.lanes,
        )

    def mint(self, upper: Position) -> Tick:
        state = self.store.load()
        return self.store.mint(self._holder, lower=state.upper, upper=upper, incarnation=state.incarnation)

    def execute(self, tick: Tick) -> dict[ItemId, Outcome]:
        group = TickGroup((tick,))
        return {m.table_id: execute(self.commits, group, m, self._records) for m in self.store.members(tick.number)}

    def tick(self, upper: Position) -> Tick:
        tick = self.mint(upper)
        self.commit(tick, self.execute(tick))
        return tick

    def commit(self, tick: Tick, outcomes: Mapping[ItemId, Outcome]) -> None:
        self.store.commit(self._holder, tick.number, outcomes, {})

    def tick_without_records(self) -> Tick:
        state = self.store.load()
        return self.store.mint_empty(self._holder, at=state.upper, incarnation=state.incarnation)

    def finish_pending(self) -> list[int]:
        """The numbers of what a predecessor left."""
        pending = [tick.number for tick in self.store.load().pending]
        for number in pending:
            tick = self.store.begin_attempt(self._holder, number)
            self.store.commit(self._holder, number, self.execute(tick), {})
        return pending


class DrivenBackfill:
    """Brings one table up, in groups that are as large as they may be.

    :param run: which run of the backfill's app this is; it takes over from the one before.
    :param most: ticks in a group.
    :param end: where an upstream that compacts ended after the groups were read, if they are read late.
    :param scratch: for its own files; None: beside the warehouse.
    """

    def __init__(
        self,
        catalog: Catalog,
        root: str,
        table_id: ItemId,
        source_id: ItemId,
        records: Records,
        *,
        run: int = 1,
        most: int = 1_000,
        end: Position | None = None,
        scratch: Path | None = None,
    ) -> None:
        self._catalog, self.records, self._table_id = catalog, records, table_id
        self.most, self._end = most, end
        backfill_id = arriving(CatalogTickStore(catalog, source_id).load())[table_id].backfill_id
        assert backfill_id is not None
        self.id = backfill_id
        self.store = CatalogBackfillStore(catalog, source_id, backfill_id)
        name = f"backfill-{backfill_id}" if run == 1 else f"backfill-{backfill_id}-{run}"
        job = note_job(catalog, name, source_id, "", backfill_id=backfill_id)
        self.holder = self.store.claim(job, stood_still=self.store.lease())
        self.commits = GroupCommits(
            self.store,
            self.holder,
            source_id=source_id,
            root=root,
            place=PARTITIONED,
            states=KeyStates(_keys(root, job, scratch)),
            lanes=lambda: 1,
        )

    def run(self) -> list[tuple[int, int]]:
        """To the end of the log; the next tick cuts it over. Gives back the first and the last tick of each group."""
        groups = []
        while (group := self.next_group()) is not None:
            self.follow(group, self.execute(group))
            groups.append((group.first.number, group.number))
        self.arm()
        return groups

    def arm(self) -> None:
        with self._catalog.write() as session:
            assert arm_table(session, self._table_id)

    def next_group(self) -> TickGroup | None:
        state = self.store.load()
        table = arriving(state)[self._table_id]
        if table.next_tick > state.last_number:
            return None
        behind = rearmost({table.table_id: table}, self.store.spec_changes([table.table_id]))
        return cut_group(self.store.ticks(behind.first, self.most), before=behind.before)

    def member(self, group: TickGroup) -> Member:
        (found,) = self.store.members([self._table_id], group.first.number)
        return found

    def execute(self, group: TickGroup, member: Member | None = None) -> dict[ItemId, Outcome]:
        """:param member: as it was some time ago."""
        return {self._table_id: execute(self.commits, group, member or self.member(group), self.records)}

    def follow(self, group: TickGroup, outcomes: dict[ItemId, Outcome]) -> None:
        self.store.follow(
            self.holder, first=group.first.number, last=group.last, outcomes=outcomes, stats={}, end=self._end
        )
