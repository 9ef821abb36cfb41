"""What a repair of the log may put back and take away."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.repairs import insert_repaired_tick, remove_pending_tick
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.repair import repair_catalog
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.errors import CatalogBehind, LogConflict
from airflow_provider_mzshare.storage.fanout.results import MemberResult
from airflow_provider_mzshare.storage.writing.dues import Due
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.writers import GroupCommits
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log, add_source, add_tables


def _at(offset: int) -> Position:
    return Position({"0": offset})


@pytest.fixture
def log(catalog: Catalog) -> Log:
    """One committed tick, to offset 10 at time 1000."""
    source = add_source(catalog)
    add_tables(catalog, source, "t")
    log = Log(catalog, source)
    log.tick(records=10)
    return log


def test_lost_ticks_come_back_pending_and_are_finished_in_order(catalog: Catalog, log: Log) -> None:
    with catalog.write() as session:
        insert_repaired_tick(session, log.source_id, 2, _at(10), _at(15), 5_000)
        insert_repaired_tick(session, log.source_id, 3, _at(15), _at(20), 6_000)
    state = log.store.load()
    assert [(tick.number, tick.repaired, tick.committed) for tick in state.pending] == [
        (2, True, False),
        (3, True, False),
    ]
    assert log.store.knows(5_000)
    with pytest.raises(LogConflict, match="comes before"):
        log.commit(state.pending[1])
    log.commit(state.pending[0])
    log.commit(state.pending[1])
    assert log.store.load().tables[ItemId("u2")].upper == 6_001
    assert log.mint().mz_timestamp == 6_001


@pytest.mark.parametrize(
    ("number", "lower", "upper", "time"),
    [(3, 10, 15, 5_000), (1, 10, 15, 5_000), (2, 9, 15, 5_000), (2, 10, 9, 5_000), (2, 10, 15, 1_000)],
)
def test_a_tick_that_does_not_fit_is_refused(
    catalog: Catalog, log: Log, number: int, lower: int, upper: int, time: int
) -> None:
    before = log.store.load()
    with pytest.raises(LogConflict), catalog.write() as session:
        insert_repaired_tick(session, log.source_id, number, _at(lower), _at(upper), time)
    assert log.store.load() == before


def test_a_tick_minted_in_place_of_a_lost_one_gives_way_to_it(catalog: Catalog, log: Log) -> None:
    minted = log.mint(records=3)
    with catalog.write() as session:
        remove_pending_tick(session, log.source_id, minted.number)
        insert_repaired_tick(session, log.source_id, 2, _at(10), _at(30), 9_000)
    state = log.store.load()
    assert [(tick.upper, tick.mz_timestamp) for tick in state.pending] == [(_at(30), 9_000)]
    assert not log.store.knows(minted.mz_timestamp)
    log.commit(state.pending[0])


def test_only_the_newest_pending_tick_is_taken_away(catalog: Catalog, log: Log) -> None:
    with pytest.raises(LogConflict), catalog.write() as session:
        remove_pending_tick(session, log.source_id, 1)
    with catalog.write() as session:
        insert_repaired_tick(session, log.source_id, 2, _at(10), _at(15), 5_000)
        insert_repaired_tick(session, log.source_id, 3, _at(15), _at(20), 6_000)
    with pytest.raises(LogConflict), catalog.write() as session:
        remove_pending_tick(session, log.source_id, 2)
    assert len(log.store.load().pending) == 2


def test_tables_that_joined_by_a_removed_tick_join_the_next(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    log.mint(records=3)
    with catalog.write() as session:
        remove_pending_tick(session, source, 1)
    assert log.store.load().tables[table].status == "created"
    assert log.store.load().members == frozenset()
    with catalog.write() as session:
        insert_repaired_tick(session, source, 1, _at(0), _at(9), 7_000)
    assert log.store.load().members == {table}
    log.commit(log.store.load().pending[0])
    with catalog.read() as session:
        assert items.get_table_item(session, table).since == 7_000


def test_a_table_dropped_while_the_removed_tick_was_pending_stays_dropped(catalog: Catalog) -> None:
    source = add_source(catalog)
    gone, stays = add_tables(catalog, source, "gone", "stays")
    log = Log(catalog, source)
    log.mint(records=3)
    with catalog.write() as session:
        items.drop_table(session, gone)
        remove_pending_tick(session, source, 1)
    log.tick(records=1)
    assert log.store.load().members == {stays}
    with catalog.read() as session:
        assert items.get_table_item(session, gone).status == "dropped"


def test_what_a_backfill_wrote_as_a_group_brings_the_ticks_back_that_only_it_knows(tmp_path: Path) -> None:
    """An empty tick leaves no trace but the group that ended with it: without it the source could never go on."""
    warehouse, old = str(tmp_path / "warehouse"), f"sqlite:///{tmp_path / 'old.db'}"
    with Catalog(f"sqlite:///{tmp_path / 'new.db'}") as catalog:
        catalog.upgrade()
        log, [late] = add_late_tables(catalog, "late", ticks=1)
        with (
            closing(sqlite3.connect(tmp_path / "new.db")) as new,
            closing(sqlite3.connect(tmp_path / "old.db")) as copy,
        ):
            new.backup(copy)
        log.tick(10)
        empty = log.empty()
        backfill = Backfilling(catalog, log.source_id)
        places = {"root": warehouse, "place": PARTITIONED, "states": KeyStates(tmp_path / "keys"), "lanes": lambda: 1}
        commits = GroupCommits(backfill.store, backfill.holder, source_id=log.source_id, **places)  # type: ignore[arg-type]
        group, [member] = TickGroup(tuple(backfill.store.ticks(1, 3))), backfill.store.members([late])
        commits.begin(group, [member])
        due = commits.due(group, member)
        assert isinstance(due, Due)
        commits.commit(group, due, MemberResult(), 0.0)
        commits.close()
    with Catalog(old) as catalog:
        backfill = Backfilling(catalog, log.source_id)
        heir = GroupCommits(backfill.store, backfill.holder, source_id=log.source_id, **places)  # type: ignore[arg-type]
        with pytest.raises(CatalogBehind):
            heir.check_log()
        (repaired,) = repair_catalog(catalog, warehouse)
        assert repaired.ticks == (2, 3)
        last = backfill.store.load().pending[-1]
        assert (last.lower, last.upper, last.mz_timestamp) == (empty.lower, empty.upper, empty.mz_timestamp)
        heir.check_log()
        heir.close()
