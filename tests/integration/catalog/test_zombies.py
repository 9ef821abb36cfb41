"""Backfills that go on after another has taken their place: real collections, on both databases.

The topic is compacted, so whoever reads a tick late finds nothing in it, and needs no commit for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import func, select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CommitRow
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table, resume_table, retire_backfill
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.merging import merge_backfills
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.lifecycle.read_table import read_table
from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.state import Generation, Holder
from airflow_provider_mzshare.errors import Fenced, LogConflict
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.fanout.results import MemberResult
from airflow_provider_mzshare.storage.writing.dues import Due
from tests.integration.catalog.test_cost import counted
from tests.support.catalog import add_source
from tests.support.driven import DrivenBackfill, DrivenIngestion
from tests.support.keyed_cases import PLAIN, Step, assemble
from tests.support.keyed_oracle import Case, Record, Tick

ONE, TWO = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}'
CASE = assemble(
    PLAIN,
    [
        [Step(0, b"a", ONE), Step(0, b"b", ONE)],
        [Step(0, b"c", ONE)],
        [Step(0, b"a", TWO), Step(0, b"d", TWO)],
        [Step(0, b"e", ONE)],
    ],
)
SPECS = {
    "appended": TableSpec(reference="topic", format="json", columns=PLAIN.spec.columns),
    "vectors": PLAIN.spec.model_copy(update={"deletion_vectors": True}),
    "merged": PLAIN.spec.model_copy(update={"deletion_vectors": False}),
}


class Scene:
    """A source with a live table, and records that go away."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog, self.root = catalog, str(folder / "warehouse")
        Path(self.root).mkdir()
        self.scratch = folder
        self.there: list[Record] = list(CASE.records)
        self.source_id = add_source(catalog)
        self.add("first", SPECS["appended"])
        self.app = DrivenIngestion(catalog, self.root, self.source_id, self.read, JobId("ingest"), scratch=folder)

    def add(self, name: str, spec: TableSpec) -> ItemId:
        with self.catalog.write() as session:
            return items.create_table(session, name=("public", name), source_id=self.source_id, spec=spec)

    def tick(self, number: int) -> None:
        self.app.tick(Position({lane: end for lane, (_, end) in CASE.ticks[number - 1].ranges.items()}))

    def read(self, lower: Position, upper: Position) -> list[pa.RecordBatch]:
        lanes = {int(lane): (lower[lane], upper[lane]) for lane in upper}
        return [Case(PLAIN, (Tick(1, lanes),), tuple(self.there)).batch()]

    def compact(self, number: int) -> None:
        """Of this tick no record is left."""
        ranges = CASE.ticks[number - 1].ranges
        self.there = [one for one in self.there if one.offset not in range(*ranges[one.partition])]

    def backfill(self, table_id: ItemId, run: int = 1) -> DrivenBackfill:
        place = (self.catalog, self.root, table_id, self.source_id, self.read)
        return DrivenBackfill(*place, run=run, scratch=self.scratch)

    def counts_what_is_there(self, name: str, table_id: ItemId) -> bool:
        with self.catalog.read() as session:
            data = table_read_point(session, table_id).data
            rows = session.scalar(select(func.sum(CommitRow.rows)).where(CommitRow.collection_id == data))
        return rows == read_table(self.catalog, self.root, name).num_rows

    def version(self, table_id: ItemId) -> int:
        with self.catalog.read() as session:
            data = CollectionId(table_read_point(session, table_id).data)
        return Collection.open(self.root, data).delta_version

    def cut_over(self, backfill: DrivenBackfill, number: int) -> None:
        backfill.arm()
        self.tick(number)


@pytest.fixture
def scene(catalog: Catalog, tmp_path: Path) -> Scene:
    return Scene(catalog, tmp_path)


def follow(backfill: DrivenBackfill) -> None:
    """One group, as large as it may be."""
    group = backfill.next_group()
    assert group is not None
    backfill.follow(group, backfill.execute(group))


def meanwhile(scene: Scene, happens: Callable[[], None]) -> Callable[[Position, Position], list[pa.RecordBatch]]:
    """Reads what is there, and then, before anything is put, something happens."""

    def read(lower: Position, upper: Position) -> list[pa.RecordBatch]:
        found = scene.read(lower, upper)
        happens()
        return found

    return read


@pytest.mark.parametrize("kind", SPECS)
def test_a_zombie_cannot_put_upon_a_commit_of_its_successor(scene: Scene, kind: str) -> None:
    """The successor's first commit is forced. The tick after it has no records any more, and gets none."""
    scene.tick(1)
    late = scene.add("late", SPECS[kind])
    zombie = scene.backfill(late)
    follow(zombie)
    scene.tick(2)
    successor = scene.backfill(late, run=2)
    follow(successor)
    scene.tick(3)
    versions = []

    def successor_goes_on() -> None:
        scene.compact(3)
        follow(successor)
        versions.append(scene.version(late))

    zombie.records = meanwhile(scene, successor_goes_on)
    with pytest.raises(Fenced):
        follow(zombie)
    assert versions == [scene.version(late)], "the zombie has put nothing"
    scene.cut_over(successor, 4)
    assert scene.counts_what_is_there("late", late)


@pytest.mark.parametrize("kind", SPECS)
def test_a_backfill_cannot_put_for_a_table_that_another_one_has_taken(scene: Scene, kind: str) -> None:
    """It holds its lease all the time: another table is left to it."""
    scene.tick(1)
    late, _ = (scene.add(name, SPECS[kind]) for name in ("late", "later"))
    with scene.catalog.write() as session:
        assert merge_backfills(session, scene.source_id, list(scene.app.store.load().backfills))
    first = scene.backfill(late)
    follow(first)
    scene.tick(2)
    scene.tick(3)
    group = first.next_group()
    assert group is not None
    member = first.member(group)
    with scene.catalog.write() as session:
        assert retire_backfill(session, first.id, [late]) == [late]
        resume_table(session, late)
    second = scene.backfill(late)
    second.most = 1
    follow(second)
    versions = []

    def second_goes_on() -> None:
        scene.compact(3)
        follow(second)
        versions.append(scene.version(late))

    first.records = meanwhile(scene, second_goes_on)
    with pytest.raises(LogConflict):
        first.execute(group, member)
    assert versions == [scene.version(late)], "nothing was put"
    scene.cut_over(second, 4)
    assert scene.counts_what_is_there("late", late)


def test_what_a_backfill_may_put_is_asked_by_one_statement(scene: Scene) -> None:
    """Of a current generation and of a new one, and after another has taken over."""
    scene.tick(1)
    late = scene.add("late", SPECS["vectors"])
    backfill = scene.backfill(late)
    store, begin = backfill.store, 1 if scene.catalog.is_embedded else 0
    with counted(scene.catalog) as statements:
        store.check_planned(backfill.holder, [(late, 1)])
    assert len(statements) == 1 + begin
    with pytest.raises(LogConflict, match=late):
        store.check_planned(backfill.holder, [(late, 1), (late, 2)])
    successor = scene.backfill(late, run=2)
    with pytest.raises(Fenced):
        store.check_planned(backfill.holder, [(late, 1)])
    follow(successor)
    scene.cut_over(successor, 2)
    with pytest.raises(Fenced, match="has ended"):
        store.check_planned(successor.holder, [(late, 1)])
    with scene.catalog.write() as session:
        resnapshot_table(session, late)
    again = scene.backfill(late)
    again.store.check_planned(again.holder, [(late, 2)])


def test_a_group_asks_once_for_all_its_members_and_a_tick_never(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[Generation]] = []
    check = CatalogBackfillStore.check_planned

    def note(store: CatalogBackfillStore, holder: Holder, planned: frozenset[Generation]) -> None:
        asked.append(planned)
        check(store, holder, planned)

    monkeypatch.setattr(CatalogBackfillStore, "check_planned", note)
    scene.tick(1)
    assert asked == []
    both = [scene.add(name, SPECS[name]) for name in ("vectors", "appended")]
    with scene.catalog.write() as session:
        assert merge_backfills(session, scene.source_id, list(scene.app.store.load().backfills))
    backfill = scene.backfill(both[0])
    group = backfill.next_group()
    assert group is not None
    members = backfill.store.members(both, 1)
    backfill.commits.begin(group, members)
    dues = [backfill.commits.due(group, member) for member in members]
    for due in dues:
        assert isinstance(due, Due)
        backfill.commits.commit(group, due, MemberResult(), 0.0)
    assert asked == [frozenset((table, 1) for table in both)]
