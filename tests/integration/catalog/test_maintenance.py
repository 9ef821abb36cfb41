"""Maintenance removes what no read can need, an hour after ``since`` has passed it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.state import Done, Tick, Written
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import NewFiles, commit_tick
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.fanout.plan import errors_schema
from tests.support.catalog import Log, add_source, add_tables
from tests.support.delta import SCHEMA, read_rows, rows_of, tick_file

HOUR_MS = 3_600_000


class Filled:
    """A table with forty ticks, its files merged after the twentieth."""

    def __init__(self, catalog: Catalog, root: Path) -> None:
        self.catalog, self.root = catalog, str(root)
        self.source = add_source(catalog)
        (self.table,) = add_tables(catalog, self.source, "t")
        self.log = Log(catalog, self.source)
        self.ticks: list[Tick] = []
        for number in range(1, 41):
            self._tick(number)
            if number == 20:
                compact(self.data, min_files=2)

    def _tick(self, number: int) -> None:
        tick = self.log.mint()
        member = self.log.member(self.table)
        if number == 1:
            create_collection(self.root, member.data, SCHEMA)
            create_collection(self.root, member.errors, errors_schema())
            self.data = Collection.open(self.root, member.data)
        done = commit_tick(
            self.data,
            mz_timestamp=tick.mz_timestamp,
            content=NewFiles([tick_file(self.data, number)]),
            metadata={"mz_tick": str(number)},
            knows=lambda _: True,
            force=False,
        )
        assert done.version is not None
        self.log.commit(tick, {self.table: Done((Written(member.data, done.version, 3, "0" * 32),), 3)})
        self.ticks.append(tick)

    def move_since(self, number: int) -> None:
        moved = update(TableRow).where(TableRow.id == self.table).values(since=self.ticks[number - 1].mz_timestamp)
        with self.catalog.write() as session:
            session.execute(moved)

    def rows_at(self, number: int) -> list[dict[str, object]]:
        with self.catalog.read() as session:
            point = table_read_point(session, self.table, tick=number)
        return read_rows(self.data, point.data_version)

    def files(self) -> int:
        return len(list(Path(self.data.uri).glob("*.parquet")))


@pytest.fixture
def filled(catalog: Catalog, tmp_path: Path) -> Filled:
    return Filled(catalog, tmp_path)


def test_what_since_has_passed_goes_an_hour_later_and_every_other_answer_stays(filled: Filled) -> None:
    now, before = wall_ms(), filled.files()
    # Its ticks are of long ago by the wall clock, so retention alone would move ``since`` to the last one.
    filled.move_since(25)
    _retain_for_ever(filled)
    (first,) = maintain(filled.catalog, filled.root, now_ms=now)
    assert (first.table, first.data_files, first.trouble) == ("t", 0, "")
    (early,) = maintain(filled.catalog, filled.root, now_ms=now + HOUR_MS // 2)
    assert early.data_files == 0
    (checked,) = maintain(filled.catalog, filled.root, now_ms=now + 2 * HOUR_MS, dry_run=True)
    assert (checked.data_files, filled.files()) == (20, before)
    (done,) = maintain(filled.catalog, filled.root, now_ms=now + 2 * HOUR_MS)
    assert (done.data_files, done.trouble) == (20, "")
    assert done.log_files > 0
    assert filled.files() == before - 20
    for number in range(25, 41):
        assert filled.rows_at(number) == rows_of(range(1, number + 1))
    with pytest.raises(NotReadable):
        filled.rows_at(24)
    (again,) = maintain(filled.catalog, filled.root, now_ms=now + 4 * HOUR_MS)
    assert again.data_files == 0


def test_it_moves_since_and_asks_the_holder_to_compact(filled: Filled) -> None:
    (done,) = maintain(filled.catalog, filled.root)
    last = filled.ticks[-1].mz_timestamp
    state = filled.log.store.load()
    assert (state.tables[filled.table].since, state.compaction_asked) == (last, 1)
    assert done.data_files == 0
    maintain(filled.catalog, filled.root, only=ItemId("u999"))
    assert filled.log.store.load().compaction_asked == 1


def test_a_folder_that_cannot_be_read_is_told_and_the_other_tables_are_done(filled: Filled) -> None:
    now = wall_ms()
    filled.move_since(25)
    _retain_for_ever(filled)
    maintain(filled.catalog, filled.root, now_ms=now)
    for entry in Path(filled.data.uri, "_delta_log").glob("*.json"):
        entry.write_text("{")
    (told,) = maintain(filled.catalog, filled.root, now_ms=now + 2 * HOUR_MS)
    assert told.trouble
    assert filled.files() == 41


def _retain_for_ever(filled: Filled) -> None:
    with filled.catalog.write() as session:
        row = session.get(TableRow, filled.table)
        assert row is not None
        row.spec = row.spec.replace('"retain_history_seconds":86400', '"retain_history_seconds":9999999999')
