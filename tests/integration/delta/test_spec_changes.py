"""A table whose spec changes, on real collections: a tick is written, read and proved with the spec of its mint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.lifecycle.check_table import check_table
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_table
from airflow_provider_mzshare.control.lifecycle.verification import verify_table
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from tests.support.before import generated
from tests.support.catalog import new_sqlite
from tests.support.driven import DrivenBackfill, DrivenIngestion

NO_CONNECTIONS = FixedConnections({})
SQL = """
CREATE SOURCE house FROM LOAD GENERATOR AUCTION (SEED 7, TICK INTERVAL '1ms', UP TO 100);
CREATE TABLE bids FROM SOURCE house (REFERENCE bids) WITH (EXCLUDE COLUMNS (amount, auction_id, bid_time))
"""
TYPES = {"id": "bigint", "buyer": "bigint", "amount": "integer"}


class House:
    """A table of bids, of which some columns are kept."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder / "warehouse")
        self.catalog = Catalog(new_sqlite(folder / "catalog.db"))
        execute_script(self.catalog, SQL, NO_CONNECTIONS)
        with self.catalog.read() as session:
            self.source = items.find_source(session, ("public", "house"))
        self.records = generated(self.source)
        self.app = self.start("first")

    def start(self, job: str) -> DrivenIngestion:
        return DrivenIngestion(self.catalog, self.root, self.source.id, self.records, JobId(job))

    def tick(self, upto: int) -> None:
        self.app.tick(upper(upto))

    @property
    def table(self) -> items.TableItem:
        with self.catalog.read() as session:
            return items.find_table(session, ("public", "bids"))

    def keep(self, *columns: str) -> None:
        specs = tuple(ColumnSpec(name=name, type=TYPES[name]) for name in columns)
        with self.catalog.write() as session:
            items.set_table_spec(session, self.table.id, self.table.spec.model_copy(update={"columns": specs}))

    def read(self, tick: int | None = None) -> tuple[list[str], int, int]:
        """Its columns, how many rows it has, and how many values of them are not NULL."""
        rows = read_table(self.catalog, self.root, "bids", Query(ordered=True), tick=tick)
        return rows.schema.names, rows.num_rows, sum(len(column) - column.null_count for column in rows.columns)

    def prove(self, rows: int) -> None:
        found = verify_table(self.catalog, NO_CONNECTIONS, self.root, self.table, everything=True)
        assert (found.verdict, found.rows, found.errors) == ("exact", rows, 0)
        assert check_table(self.catalog, self.root, self.table, deep=True).is_whole

    def compact(self) -> None:
        with self.catalog.read() as session:
            collection_id = table_read_point(session, self.table.id).data
        assert compact(Collection.open(self.root, collection_id), min_files=2).done


def upper(upto: int) -> Position:
    return Position(dict.fromkeys(range(5), upto))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.catalog.close()


def test_a_tick_that_was_minted_before_a_change_is_replayed_with_the_old_columns(house: House) -> None:
    house.tick(5)
    house.app.mint(upper(9))  # and here its app is killed
    house.keep("id", "buyer", "amount")
    house.app = house.start("second")
    assert house.app.finish_pending() == [2]
    assert house.read() == (["id", "buyer"], 9, 18)
    house.tick(14)
    assert house.read(1) == (["id", "buyer"], 5, 10)
    assert house.read(2) == (["id", "buyer"], 9, 18)
    assert house.read(3) == (["id", "buyer", "amount"], 14, 2 * 9 + 3 * 5)
    house.prove(14)
    house.compact()
    house.prove(14)
    assert house.read(2) == (["id", "buyer"], 9, 18)


def test_a_tick_without_rows_has_the_columns_of_its_spec(house: House) -> None:
    house.tick(5)
    house.keep("id", "amount")
    house.app.tick(upper(5))
    assert house.read(1) == (["id", "buyer"], 5, 10)
    assert house.read(2) == (["id", "amount"], 5, 5)
    house.keep("id")
    house.tick(8)
    assert house.read(3) == (["id"], 8, 8)
    house.prove(8)


def test_groups_of_a_new_generation_end_where_the_spec_changed(house: House) -> None:
    for upto in (5, 9):
        house.tick(upto)
    house.keep("id", "buyer", "amount")
    for upto in (14, 20):
        house.tick(upto)
    with house.catalog.write() as session:
        resnapshot_table(session, house.table.id)
    backfill = DrivenBackfill(house.catalog, house.root, house.table.id, house.source.id, house.records)
    assert backfill.run() == [(1, 2), (3, 4)]
    house.tick(22)
    assert house.table.generation == 2
    house.prove(22)
    assert house.read(2) == (["id", "buyer"], 9, 18)
    assert house.read(5) == (["id", "buyer", "amount"], 22, 2 * 9 + 3 * 13)


def test_a_tick_that_was_written_with_another_spec_is_found(house: House) -> None:
    """What a replay with the newest spec would write: it has hashed columns that are not the tick's."""
    house.tick(5)
    tick = house.app.mint(upper(9))
    house.keep("id", "buyer", "amount")
    members = house.app.store.members
    house.app.store.members = lambda number=None: members(tick.number + 1)  # type: ignore[method-assign]
    house.app.finish_pending()
    (damage,) = check_table(house.catalog, house.root, house.table, deep=True).damages
    assert "the sums of the hashes differ" in damage.problem
