"""Writers of collections as apps have them, without Spark: the same pass, over records that follow from their place."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Done, Generation, Holder, Outcome, Snapshot, Tick, Written
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS, hash_table
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.received import received
from airflow_provider_mzshare.storage.fanout.results import MemberResult, merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.writing.dues import Due
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.member_commits import MemberCommits
from tests.support.delta import read_arrow

SOURCE = ItemId("u0")
Kind = TypeVar("Kind", bound=MemberCommits)


@dataclass(frozen=True)
class TableMember:
    table_id: ItemId
    name: str
    spec: TableSpec
    data: CollectionId
    errors: CollectionId
    generation: int = 1
    hash_version: int = 1
    left_out: Snapshot | None = None


MEMBER = TableMember(
    table_id=ItemId("u1"),
    name="t",
    spec=TableSpec(reference="t", format="json", columns=(ColumnSpec(name="a", type="bigint"),)),
    data=CollectionId("u1-g1-data-0a1b2c3d"),
    errors=CollectionId("u1-g1-errors-0a1b2c3d"),
)


@dataclass
class Log:
    """What a writer asks the catalog for. Ten ticks of two partitions; the second one comes with the third tick."""

    ticks: tuple[Tick, ...] = ()
    written: list[Written] = field(default_factory=list)
    damages: dict[CollectionId, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ticks:
            uppers = [Position({0: 4 * n, 1: max(0, 3 * (n - 2))}) for n in range(11)]
            self.ticks = tuple(
                Tick(n, uppers[n - 1], uppers[n], mz_timestamp=1_700_000_000_000 + 1000 * n) for n in range(1, 11)
            )

    def group(self, first: int, last: int) -> TickGroup:
        return TickGroup(self.ticks[first - 1 : last])

    @property
    def next_tick(self) -> int:
        """The first tick that the table has not got, as far as the catalog has heard."""
        return 1 + max((w.tick for w in self.written if w.collection_id == MEMBER.data), default=0)

    def follow(self, outcome: Outcome) -> Done:
        """Note what was written, as the catalog does."""
        assert isinstance(outcome, Done)
        self.written += outcome.written
        return outcome

    def collections(self) -> Sequence[CollectionId]:
        return [MEMBER.data, MEMBER.errors]

    def knows(self, mz_timestamp: int) -> bool:
        return mz_timestamp in {tick.mz_timestamp for tick in self.ticks}

    def last_written(self) -> Mapping[CollectionId, int]:
        return {w.collection_id: w.mz_timestamp for w in sorted(self.written, key=lambda w: w.mz_timestamp)}

    def advance_since(self, holder: Holder) -> None:
        """Nothing is retained for less than for ever here."""

    def check_planned(self, holder: Holder, planned: Iterable[Generation]) -> None:
        """Nobody loses a lease or a table here."""

    def note_damage(self, collection_id: CollectionId, problem: str) -> None:
        self.damages[collection_id] = problem


def writer(kind: type[Kind], log: Log, root: Path, job: str = "job-1") -> Kind:
    states = KeyStates(root.with_name(f"{root.name}-keys"))
    return kind(
        log, Holder(JobId(job), 1), source_id=SOURCE, root=str(root), place=PARTITIONED, states=states, lanes=lambda: 1
    )


def plan(commits: MemberCommits, group: TickGroup, member: TableMember) -> Due | Done:
    commits.begin(group, [member])
    return commits.due(group, member)


def run_pass(group: TickGroup, due: Due) -> MemberResult:
    text = FanoutPlan(group.first.number, (due.plan,), group.ends()).to_json()
    out = write_partition(iter([batch_of_range(group.lower, group.upper)]), text)
    rows = [row for batch in out for row in batch.to_pylist()]
    return replace(merge_results(rows).get(due.plan.table_id, MemberResult()), received=received(rows))


def execute(commits: MemberCommits, group: TickGroup, member: TableMember) -> Outcome:
    """Plan, pass, commit."""
    due = plan(commits, group, member)
    return due if isinstance(due, Done) else finish(commits, group, due)


def finish(commits: MemberCommits, group: TickGroup, due: Due) -> Outcome:
    return commits.commit(group, due, run_pass(group, due), time.time())


def batch_of_range(lower: Position, upper: Position) -> pa.RecordBatch:
    """Every fifth record is bad."""
    rows = [
        {
            "key": None,
            "value": b"bad" if (offset + int(p)) % 5 == 4 else json.dumps({"a": offset}).encode(),
            "partition": int(p),
            "offset": offset,
            "timestamp": 0,
        }
        for p in upper
        for offset in range(lower[p], upper[p])
    ]
    return pa.RecordBatch.from_pylist(rows, INPUT_SCHEMA)


def check(root: Path, log: Log, last: int, member: TableMember) -> None:
    """Every row of the ticks up to ``last`` once, in its collection, with its tick; and the log has heard of all."""
    expected: dict[str, Counter[tuple[int, int, int]]] = {"data": Counter(), "errors": Counter()}
    for tick in log.ticks[:last]:
        for row in batch_of_range(tick.lower, tick.upper).to_pylist():
            role = "errors" if row["value"] == b"bad" else "data"
            expected[role][tick.number, row["partition"], row["offset"]] += 1
    for role, collection_id in (("data", member.data), ("errors", member.errors)):
        table = newest(root, collection_id)
        assert (
            Counter(zip(*(table.column(n).to_pylist() for n in table.schema.names[-3:]), strict=True))
            == (expected[role])
        ), role
        noted = [w for w in log.written if w.collection_id == collection_id]
        assert sum(w.rows for w in noted) == table.num_rows
        assert sum(int(w.hash, 16) for w in noted) % MODULUS == hash_table(table)


def newest(root: Path, collection_id: CollectionId) -> pa.Table:
    version = Collection.open(str(root), collection_id).delta_version
    return read_arrow(str(root), collection_id, version, with_system_columns=True)


def spans(written: Iterable[Written], log: Log) -> dict[str, list[tuple[int, int]]]:
    """Per role, the first and the last tick of every commit."""
    number = {tick.mz_timestamp: tick.number for tick in log.ticks}
    found: dict[str, list[tuple[int, int]]] = {"data": [], "errors": []}
    for one in written:
        assert number[one.mz_timestamp] == one.tick
        found["data" if "-data-" in one.collection_id else "errors"].append((number[one.first_timestamp], one.tick))
    return found
