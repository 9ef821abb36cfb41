"""Tables that begin with a snapshot, in the catalog: taken under the lease, noted, followed, healed, replaced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select, text

from airflow_provider_mzshare.connectors.postgres.specs import PostgresExportDetails, PostgresSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import SnapshotRow
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.control.catalog.queries.overviews import arrival_overviews, source_overview
from airflow_provider_mzshare.control.lifecycle.arrival_text import judge_arrival
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Left, Snapshot, TableState, Tick, Written
from airflow_provider_mzshare.errors import Fenced, LogConflict
from tests.support.catalog import Log

START = Position({"lsn": 100})
SPEC = TableSpec(reference="orders", format="text", details=PostgresExportDetails(oid=16401, keys=("id",)), include=())


class Scene:
    """A source of a database whose log has come to 200, and two tables that were asked for together."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        with catalog.write() as session:
            spec = PostgresSpec(connection="shop", publication="pub")
            self.source = items.create_source(
                session, name=("public", "s"), spec=spec, incarnation="upstream-1", start=START
            )
        self.log = Log(catalog, self.source)
        self.tick(200)
        with catalog.write() as session:
            self.a, self.b = (
                items.create_table(session, name=("public", name), source_id=self.source, spec=SPEC) for name in "ab"
            )
        self.backfill, self.holder = self.begin(self.a, "fill-1")

    def begin(self, table_id: ItemId, job: str) -> tuple[CatalogBackfillStore, Holder]:
        backfill_id = self.table(table_id).backfill_id
        assert backfill_id is not None
        store = CatalogBackfillStore(self.catalog, self.source, backfill_id)
        return store, store.claim(JobId(job), stood_still=store.lease())

    def tick(self, lsn: int) -> Tick:
        store, holder = self.log.store, self.log.holder
        lower = store.load().upper
        tick = store.mint(holder, lower=lower, upper=Position({"lsn": lsn}), incarnation="upstream-1")
        store.commit(holder, tick.number, dict.fromkeys(store.load().members, Done()), {})
        last = store.load().last
        assert last is not None
        return last

    def table(self, table_id: ItemId) -> TableState:
        state = self.log.store.load()
        return state.replacements.get(table_id) or state.tables[table_id]

    def snapshot(self, name: str = "s-1") -> Snapshot:
        last = self.log.store.load().last
        assert last is not None
        h = Position({"lsn": last.upper["lsn"] + 60})
        return Snapshot(SnapshotId(name), last.number, last.mz_timestamp, last.upper, h, "700:705:701,703")

    def landed(self, table_id: ItemId, snapshot: Snapshot, rows: int = 7) -> Landed:
        (member,) = self.backfill.members([table_id])
        written = Written(member.data, 1, rows, f"{rows:032x}", tick=snapshot.tick, mz_timestamp=snapshot.mz_timestamp)
        return Landed(snapshot, Done((written,), rows))

    def taken(self) -> list[tuple[str, str, int, int, bool]]:
        with self.catalog.read() as session:
            rows = session.scalars(select(SnapshotRow).order_by(SnapshotRow.id, SnapshotRow.table_id))
            return [(r.id, r.table_id, r.rows_expected, r.rows_read, r.landed_at is not None) for r in rows]


def arrival_text(scene: Scene) -> dict[ItemId, str]:
    with scene.catalog.read() as session:
        source = source_overview(session, scene.source)
        found = arrival_overviews(session, scene.source)
    return {table_id: judge_arrival(one, source, None, "t").reason.split(", ")[0] for table_id, one in found.items()}


@pytest.fixture
def scene(catalog: Catalog) -> Scene:
    return Scene(catalog)


def test_tables_wait_for_a_snapshot_from_the_end_of_the_log_on(scene: Scene) -> None:
    a, b = scene.table(scene.a), scene.table(scene.b)
    assert (a.status, a.awaits_snapshot, a.position, a.next_tick) == ("backfilling", True, Position({"lsn": 200}), 2)
    assert a.backfill_id == b.backfill_id


def test_a_snapshot_is_taken_read_noted_and_followed_up_to_the_cutover(scene: Scene) -> None:
    snapshot = scene.snapshot()
    assert scene.backfill.take_snapshot(scene.holder, snapshot, {scene.a: 9, scene.b: -1}) == [scene.a, scene.b]
    scene.backfill.note_snapshot_read(scene.holder, snapshot.snapshot_id, {scene.a: 4})
    assert scene.taken() == [("s-1", scene.a, 9, 4, False), ("s-1", scene.b, 0, 0, False)]

    found = arrival_text(scene)
    assert found == {
        scene.a: "4 of about 9 rows of its snapshot are read",
        scene.b: "0 of about 0 rows of its snapshot are read",
    }
    scene.backfill.land_snapshots(scene.holder, {scene.a: scene.landed(scene.a, snapshot)}, {})
    assert arrival_text(scene)[scene.a] == "its snapshot is read"
    with scene.catalog.read() as session:
        schema = "mz_internal." if scene.catalog.url.startswith("postgresql") else ""
        query = f"SELECT object_id, rows_expected, rows_read, landed_at IS NOT NULL FROM {schema}mz_snapshots"
        assert [tuple(row) for row in session.execute(text(f"{query} ORDER BY 1"))] == [
            (scene.a, 9, 4, True),
            (scene.b, 0, 0, False),
        ]
    a = scene.table(scene.a)
    assert (a.awaits_snapshot, a.snapshot, a.next_tick, a.known_from, a.upper) == (
        False, snapshot, 2, snapshot.known_from, 0,
    )  # fmt: skip
    assert scene.table(scene.b).awaits_snapshot
    assert [taken[-1] for taken in scene.taken()] == [True, False]
    (member,) = scene.backfill.members([scene.a])
    assert member.left_out == snapshot
    assert scene.backfill.last_written()[member.data] == snapshot.mz_timestamp

    scene.backfill.land_snapshots(scene.holder, {scene.b: Left("column b")}, {})
    assert scene.table(scene.b).status == "stalled"
    for lsn, is_known in ((259, False), (260, True)):
        tick = scene.tick(lsn)
        scene.backfill.follow(scene.holder, first=tick.number, last=tick, outcomes={scene.a: Done()}, stats={})
        table = scene.table(scene.a)
        assert (table.upper > 0, table.snapshot is None) == (is_known, is_known)
        with scene.catalog.write() as session:
            assert arrivals.arm_table(session, scene.a) is is_known
    scene.tick(300)
    assert scene.table(scene.a).status == "live"
    with scene.catalog.read() as session:
        certificate = last_certificate(session, scene.a)
    assert certificate is not None
    assert (certificate.rows, certificate.data_hash) == (7, f"{7:032x}")


def test_only_the_holder_takes_and_notes(scene: Scene) -> None:
    _, newer = scene.begin(scene.a, "fill-2")
    snapshot = scene.snapshot()
    refused: list[Callable[[], object]] = [
        lambda: scene.backfill.take_snapshot(scene.holder, snapshot, {scene.a: 1}),
        lambda: scene.backfill.note_snapshot_read(scene.holder, snapshot.snapshot_id, {scene.a: 1}),
        lambda: scene.backfill.land_snapshots(scene.holder, {scene.a: scene.landed(scene.a, snapshot)}, {}),
    ]
    for call in refused:
        with pytest.raises(Fenced):
            call()
    assert scene.taken() == []
    assert scene.table(scene.a).awaits_snapshot
    scene.backfill.take_snapshot(newer, snapshot, {scene.a: 1})


def test_a_snapshot_of_a_tick_that_the_log_has_otherwise_is_refused(scene: Scene) -> None:
    snapshot = scene.snapshot()
    wrong = Snapshot.from_json(snapshot.to_json().replace('"lsn":200', '"lsn":201', 1))
    with pytest.raises(LogConflict, match="is not the one that snapshot s-1 was taken at"):
        scene.backfill.take_snapshot(scene.holder, wrong, {scene.a: 1})


def test_the_snapshot_of_a_dead_run_counts_if_its_rows_are_there(scene: Scene) -> None:
    first = scene.snapshot()
    scene.backfill.take_snapshot(scene.holder, first, {scene.a: 1, scene.b: 1})
    scene.tick(240)
    store, newer = scene.begin(scene.a, "fill-2")
    second = scene.snapshot("s-2")
    store.take_snapshot(newer, second, {scene.a: 1, scene.b: 1})
    store.land_snapshots(newer, {scene.a: scene.landed(scene.a, first), scene.b: scene.landed(scene.b, second)}, {})
    a, b = scene.table(scene.a), scene.table(scene.b)
    assert ((a.snapshot, a.next_tick), (b.snapshot, b.next_tick)) == ((first, 2), (second, 3))
    assert [taken[-1] for taken in scene.taken()] == [True, False, False, True]


@pytest.mark.parametrize("has_landed", [False, True])
def test_a_table_that_stalls_before_h_goes_on_as_it_was(scene: Scene, has_landed: bool) -> None:
    snapshot = scene.snapshot()
    if has_landed:
        scene.backfill.land_snapshots(scene.holder, {scene.a: scene.landed(scene.a, snapshot)}, {})
    before = scene.table(scene.a)
    with scene.catalog.write() as session:
        arrivals.retire_backfill(session, BackfillId(str(before.backfill_id)))
        arrivals.resume_table(session, scene.a)
    after = scene.table(scene.a)
    assert after.backfill_id != before.backfill_id
    assert (after.awaits_snapshot, after.snapshot) == (before.awaits_snapshot, before.snapshot)
    store, _ = scene.begin(scene.a, "fill-2")
    assert [one.left_out for one in store.members([scene.a])] == [snapshot if has_landed else None]


def test_a_new_generation_waits_for_a_snapshot_of_its_own_and_takes_its_place(scene: Scene) -> None:
    scene.backfill.land_snapshots(scene.holder, {scene.a: scene.landed(scene.a, scene.snapshot())}, {})
    scene.backfill.land_snapshots(scene.holder, {scene.b: Left("disk")}, {})
    tick = scene.tick(300)
    scene.backfill.follow(scene.holder, first=tick.number, last=tick, outcomes={scene.a: Done()}, stats={})
    with scene.catalog.write() as session:
        arrivals.arm_table(session, scene.a)
    scene.tick(310)
    with scene.catalog.write() as session:
        arrivals.resnapshot_table(session, scene.a)
    new = scene.table(scene.a)
    assert (new.generation, new.awaits_snapshot, new.next_tick) == (2, True, 4)
    scene.backfill, holder = scene.begin(scene.a, "fill-2")
    scene.backfill.land_snapshots(holder, {scene.a: scene.landed(scene.a, scene.snapshot("s-2"))}, {})
    tick = scene.tick(400)
    scene.backfill.follow(holder, first=tick.number, last=tick, outcomes={scene.a: Done()}, stats={})
    with scene.catalog.write() as session:
        assert arrivals.arm_table(session, scene.a)
    scene.tick(410)
    live = scene.table(scene.a)
    assert (live.status, live.generation, live.awaits_snapshot, live.snapshot) == ("live", 2, False, None)
