"""Keyed tables of an upstream that compacts, in the catalog: who is late stalls, and is filled anew."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from sqlalchemy import func, select

from airflow_provider_mzshare.connectors.base import Compaction
from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import EndRow
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.backfills import last_backfill
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.supervision import unwatched
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Include, TableSpec
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.core.ticklog.arrival_plans import TombstonesLost
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Left, Outcome, TableState, Tick, Written
from airflow_provider_mzshare.errors import NotReadable, UpstreamUnreachable
from tests.support.catalog import TOPIC_ID, add_source, add_tables

KEYED = TableSpec(reference="events", format="json", include=(Include(what="key", name="key"),), envelope="upsert")
HOUR = 3_600_000
KEPT = 24 * HOUR


@dataclass
class Scene:
    """A source whose clock is the test's own."""

    catalog: Catalog
    source_id: ItemId
    now: int = 1_000_000_000_000

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As another process: it knows no more than the catalog."""
        self.store = CatalogTickStore(self.catalog, self.source_id, clock=lambda: self.now)
        lease = self.store.lease()
        self.holder: Holder = self.store.claim(JobId(f"job-{lease.epoch}"), stood_still=lease)

    def wait(self, hours: float) -> None:
        self.now += int(hours * HOUR)

    def see(self, offset: int, *, kept: int | None = KEPT) -> dict[ItemId, str]:
        return dict(self.store.see_end(Position({"0": offset}), ago_ms=0, kept_ms=kept, lag_ms=0))

    def mint(self, upper: int) -> Tick:
        lower = self.store.load().upper
        return self.store.mint(self.holder, lower=lower, upper=Position({"0": upper}), incarnation=TOPIC_ID)

    def tick(self, upper: int) -> None:
        tick = self.mint(upper)
        self.commit(tick)

    def commit(self, tick: Tick) -> None:
        self.store.commit(self.holder, tick.number, {member.table_id: Done() for member in self.store.members()}, {})

    def table(self, table_id: ItemId) -> TableState:
        return self.store.load().tables[table_id]


@pytest.fixture
def scene(catalog: Catalog) -> Scene:
    return Scene(catalog, add_source(catalog))


def add_keyed(catalog: Catalog, source_id: ItemId, name: str = "keyed") -> ItemId:
    with catalog.write() as session:
        return items.create_table(session, name=("public", name), source_id=source_id, spec=KEYED)


def live(scene: Scene) -> tuple[ItemId, ItemId]:
    """One that is keyed and one that is not, both with a tick."""
    (plain,) = add_tables(scene.catalog, scene.source_id, "plain")
    keyed = add_keyed(scene.catalog, scene.source_id)
    scene.see(10)
    scene.tick(10)
    return keyed, plain


def resume(scene: Scene, table_id: ItemId) -> None:
    with scene.catalog.write() as session:
        arrivals.resume_table(session, table_id)


def test_an_app_that_was_away_for_too_long_loses_its_keyed_tables_alone(scene: Scene) -> None:
    keyed, plain = live(scene)
    scene.see(10)
    pending = scene.mint(15)
    scene.wait(25)
    scene.restart()
    assert list(scene.see(20)) == [keyed]
    stalled = scene.table(keyed)
    assert (stalled.status, stalled.position) == ("stalled", Position({"0": 10}))
    assert stalled.reason == (
        "tombstones_lost: it was behind for 25.0 h, and the upstream keeps deletes for 24.0 h: it may have missed some"
    )
    scene.store.begin_attempt(scene.holder, pending.number)
    scene.commit(pending)
    scene.tick(20)
    assert scene.table(plain).position == Position({"0": 20})
    assert scene.table(keyed) == stalled
    assert scene.see(20) == {}


def test_an_app_that_was_away_for_a_shorter_time_goes_on(scene: Scene) -> None:
    keyed, _ = live(scene)
    scene.wait(23)
    scene.restart()
    assert scene.see(20) == {}
    scene.tick(20)
    assert scene.table(keyed).position == Position({"0": 20})


def test_an_upstream_without_new_records_can_wait(scene: Scene) -> None:
    keyed, _ = live(scene)
    scene.wait(1_000)
    scene.restart()
    assert scene.see(10) == {}
    scene.wait(1)
    scene.tick(20)
    assert scene.table(keyed).status == "live"


def test_an_upstream_that_does_not_compact_can_wait(scene: Scene) -> None:
    (keyed,) = [add_keyed(scene.catalog, scene.source_id)]
    scene.see(10, kept=None)
    scene.tick(10)
    scene.wait(1_000)
    scene.restart()
    assert scene.see(20, kept=None) == {}
    scene.tick(20)
    assert scene.table(keyed).status == "live"


def test_what_was_read_too_late_is_not_committed(scene: Scene) -> None:
    """The app stood still between the mint and the commit, and nobody has looked since."""
    keyed, plain = live(scene)
    tick = scene.mint(20)
    scene.wait(25)
    scene.commit(tick)
    assert scene.table(keyed).status == "stalled"
    assert (scene.table(keyed).reason or "").startswith("tombstones_lost: ")
    assert scene.table(plain).position == Position({"0": 20})


def test_resume_is_refused_and_resnapshot_begins_anew(scene: Scene) -> None:
    keyed, _ = live(scene)
    scene.wait(25)
    scene.see(20)
    with pytest.raises(TombstonesLost) as refused:
        resume(scene, keyed)
    assert refused.value.hint == "mzshare sql 'ALTER TABLE keyed RESNAPSHOT', which reads it anew"
    with scene.catalog.write() as session:
        arrivals.resnapshot_table(session, keyed)
    scene.wait(100)
    assert scene.see(30) == {}, "its reads have not begun"
    fill = Fill(scene, keyed)
    fill.begin()
    fill.group(1, 1)
    new = scene.store.load().replacements[keyed]
    assert (new.status, new.begun_at, new.position) == ("backfilling", scene.now, Position({"0": 10}))
    scene.wait(23)
    assert scene.see(40) == {}
    scene.wait(2)
    assert list(scene.see(40)) == [keyed]
    assert scene.store.load().replacements[keyed].status == "stalled"
    with pytest.raises(TombstonesLost):
        resume(scene, keyed)


def test_one_that_stalled_for_another_reason_is_resumed_in_time_or_not_at_all(scene: Scene) -> None:
    keyed, _ = live(scene)
    tick = scene.mint(20)
    outcomes: dict[ItemId, Outcome] = {m.table_id: Done() for m in scene.store.members()} | {keyed: Left("no room")}
    scene.store.commit(scene.holder, tick.number, outcomes, {})
    scene.wait(23)
    scene.see(25)
    state = scene.store.load()
    assert arrival_plans.resume(state, keyed, "keyed").action == "resume"
    scene.wait(2)
    scene.see(25)
    assert scene.table(keyed).reason == "no room"
    with pytest.raises(TombstonesLost):
        resume(scene, keyed)


class Fill:
    """The backfill of one table, with the test's clock."""

    def __init__(self, scene: Scene, table_id: ItemId) -> None:
        with scene.catalog.read() as session:
            found = last_backfill(session, table_id)
        assert found is not None
        self.scene, self.table_id = scene, table_id
        self.store = CatalogBackfillStore(scene.catalog, scene.source_id, found, clock=lambda: scene.now)
        self.holder = self.store.claim(JobId("fill"))

    def begin(self) -> None:
        self.store.begin_reads([self.table_id])

    def group(self, first: int, count: int, *, end: int | None = None) -> TableState:
        ticks = self.store.ticks(first, count)
        (member,) = self.store.members([self.table_id])
        times = (ticks[-1].number, ticks[-1].mz_timestamp, ticks[0].mz_timestamp)
        done = Done((Written(member.data, first + count, 3, "0" * 32, *times),), 3)
        seen = None if end is None else Position({"0": end})
        followed = self.store.follow(
            self.holder, first=first, last=ticks[-1], outcomes={self.table_id: done}, stats={}, end=seen
        )
        return followed.tables[self.table_id]


def late(scene: Scene) -> Fill:
    """A keyed table that is added after three ticks."""
    add_tables(scene.catalog, scene.source_id, "plain")
    for upper in (10, 20, 30):
        scene.wait(0.001)
        scene.tick(upper)
    fill = Fill(scene, add_keyed(scene.catalog, scene.source_id))
    scene.see(30)
    return fill


def test_a_backfill_may_pause_before_its_first_read(scene: Scene) -> None:
    fill = late(scene)
    scene.wait(1_000)
    assert scene.see(90) == {}
    fill.begin()
    scene.wait(23)
    assert fill.group(1, 1).status == "backfilling"


def test_a_backfill_that_pauses_for_too_long_stalls(scene: Scene) -> None:
    fill = late(scene)
    fill.begin()
    assert fill.group(1, 1).status == "backfilling"
    scene.wait(23)
    assert scene.see(90) == {}, "within the time"
    scene.wait(2)
    assert list(scene.see(90)) == [fill.table_id]
    assert (scene.table(fill.table_id).reason or "").startswith("tombstones_lost: ")


def test_a_read_of_history_that_takes_too_long_does_not_count(scene: Scene) -> None:
    fill = late(scene)
    fill.begin()
    fill.group(1, 1)
    scene.wait(25)
    after = fill.group(2, 2)
    assert (after.status, after.position) == ("stalled", Position({"0": 10}))


def test_a_table_is_cut_over_where_its_rows_are_known(scene: Scene) -> None:
    """When its history was read, the upstream ended at 45: what was replaced up to there may have been gone."""
    fill = late(scene)
    fill.begin()
    after = fill.group(1, 3, end=45)
    assert after.known_from == Position({"0": 45})

    def arm() -> bool:
        with scene.catalog.write() as session:
            return arrivals.arm_table(session, fill.table_id)

    assert not arm()
    scene.tick(40)
    fill.group(4, 1)
    assert not arm()
    scene.wait(0.001)
    scene.tick(50)
    after = fill.group(5, 1)
    assert arm()
    scene.tick(55)
    table = scene.table(fill.table_id)
    assert (table.status, table.since) == ("live", after.since)
    assert after.since == scene.store.load().tables[fill.table_id].since
    with scene.catalog.read() as session, pytest.raises(NotReadable, match="it has ticks 5 to 6"):
        table_read_point(session, fill.table_id, tick=4)


def test_the_times_between_a_stall_and_its_healing_cannot_be_read(scene: Scene) -> None:
    keyed, _ = live(scene)
    before = scene.table(keyed)
    scene.wait(0.001)
    tick = scene.mint(20)
    others: dict[ItemId, Outcome] = {m.table_id: Done() for m in scene.store.members()} | {keyed: Left("no room")}
    scene.store.commit(scene.holder, tick.number, others, {})
    for upper in (30, 40, 50):
        scene.wait(0.001)
        scene.tick(upper)
    resume(scene, keyed)
    fill = Fill(scene, keyed)
    fill.group(2, 2, end=50)
    fill.group(4, 2, end=50)
    with scene.catalog.read() as session:
        assert table_read_point(session, keyed, as_of_ms=before.upper - 1).tick == 1
        assert table_read_point(session, keyed, tick=5).tick == 5
        for number in (2, 3, 4):
            with pytest.raises(NotReadable, match="wrote the ticks from"):
                table_read_point(session, keyed, tick=number)


def test_few_ends_are_kept(scene: Scene) -> None:
    live(scene)
    for offset in range(40):
        scene.wait(1)
        scene.tick(20 + offset)
        scene.see(20 + offset)
    with scene.catalog.read() as session:
        count = session.scalar(select(func.count()).select_from(EndRow))
    assert count in (24, 25)


def test_a_clock_that_was_set_back_is_no_excuse(scene: Scene) -> None:
    keyed, _ = live(scene)
    scene.wait(-30)
    scene.restart()
    assert list(scene.see(20)) == [keyed]


class _Upstream:
    """Ends where the test says."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.end, self.looks, self.away = scene, 10, 0, False

    def __enter__(self) -> _Upstream:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def check_identity(self, incarnation: str) -> None:
        assert incarnation == TOPIC_ID
        if self.away:
            raise UpstreamUnreachable("it is away")

    def compaction(self) -> Compaction:
        return Compaction(KEPT)

    def end_offsets(self) -> Position:
        self.looks += 1
        return Position({"0": self.end})


@pytest.fixture
def upstream(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> _Upstream:
    found = _Upstream(scene)
    monkeypatch.setattr(unwatched, "open_upstream", lambda *args, **options: found)
    return found


def test_a_reconciler_looks_where_no_app_does(scene: Scene, upstream: _Upstream) -> None:
    """An app that was away for a day has as much time for the last record as if it had been there."""
    looker = unwatched.Unwatched(scene.catalog, EnvConnections(), clock=lambda: scene.now)
    keyed, _ = live(scene)
    assert looker.look() == {}
    assert upstream.looks == 0, "an app looks"
    for hour in range(20):
        scene.wait(1)
        upstream.end = 20 + hour
        assert looker.look() == {}
    assert upstream.looks == 20
    scene.restart()
    scene.tick(30)
    scene.wait(10)
    assert scene.see(40) == {}
    upstream.away = True
    scene.wait(20)
    assert looker.look() == {}, "the next time will do"
    upstream.away = False
    assert list(looker.look()) == [keyed]
