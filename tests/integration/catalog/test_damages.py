"""A damaged table says so wherever it is looked at, harms no other, and is healed by RESNAPSHOT."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table, resnapshot_table
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.objects.lookup import find_table, get_source_item
from airflow_provider_mzshare.control.lifecycle.check_table import DamagedTable, check_table
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_cut, read_table
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.settings import Settings
from tests.support.filled import Filled
from tests.support.relations import Described

RECORDS = [{"n": n, "name": f"row {n}"} for n in range(10)]


@pytest.fixture
def filled(catalog: Catalog, tmp_path: Path) -> Filled:
    """Tables ``good`` and ``bad`` of one source, in two ticks."""
    made = Filled(catalog, tmp_path)
    source = made.source()
    for name in ("good", "bad"):
        made.table(source, name, "n bigint, name text")
    made.feed(source, RECORDS[:6])
    made.feed(source, RECORDS[6:])
    return made


def source_of(filled: Filled) -> ItemId:
    with filled.catalog.read() as session:
        return find_table(session, ("public", "bad")).source_id


def folder(filled: Filled, name: str = "bad", role: str = "data") -> Path:
    with filled.catalog.read() as session:
        table = find_table(session, ("public", name))
        mine = (CollectionRow.table_id == table.id) & (CollectionRow.generation == table.generation)
        return Path(
            filled.root, session.scalars(select(CollectionRow.path).where(mine, CollectionRow.role == role)).one()
        )


def read(filled: Filled, name: str) -> list[dict[str, Any]]:
    return read_table(filled.catalog, filled.root, name, Query(ordered=True)).to_pylist()


def statuses(filled: Filled) -> dict[str, str]:
    """As ``mzshare status`` tells them."""
    with filled.catalog.read() as session:
        source = get_source_item(session, source_of(filled))
    of_source, tables = StatusReader(filled.catalog, Launchers(Settings.from_environment({}))).source(source)
    return {
        "s": of_source.reason,
        **{table.name.removeprefix("public."): f"{table.status} {table.reason} {table.hint}" for table in tables},
    }


def relation(filled: Filled, name: str) -> tuple[str, str | None, str | None]:
    """As the relations tell it."""
    row = Described(filled.catalog).one(f"SELECT status, error, details FROM mz_source_statuses WHERE name = '{name}'")
    return row["status"], row["error"], row["details"]


def check(filled: Filled, name: str, **how: bool) -> list[str]:
    with filled.catalog.read() as session:
        table = find_table(session, ("public", name))
    return [str(damage) for damage in check_table(filled.catalog, filled.root, table, **how).damages]


def one_file(where: Path) -> Path:
    return min(where.glob("*.parquet"))


def test_a_reader_that_meets_a_damage_names_it_and_leaves_a_mark(filled: Filled) -> None:
    file = one_file(folder(filled))
    os.truncate(file, 100)
    with pytest.raises(DamagedTable) as raised:
        read(filled, "bad")
    assert raised.value.line.startswith(f"table bad is damaged: {file.parent.name}/{file.name} has 100 bytes, but the")
    assert "mzshare sql 'ALTER TABLE bad RESNAPSHOT'" in raised.value.line
    assert statuses(filled)["bad"].startswith(f"damaged {file.parent.name}/{file.name} has 100 bytes")
    assert "RESNAPSHOT" in statuses(filled)["bad"]
    assert statuses(filled)["good"] == "live  "
    status, error, details = relation(filled, "bad")
    assert (status, file.name in (error or ""), "RESNAPSHOT" in (details or "")) == ("failed", True, True)
    assert relation(filled, "good")[1] is None
    assert len(read(filled, "good")) == 10
    with pytest.raises(DamagedTable):
        read_cut(filled.catalog, filled.root, ["good", "bad"])


def test_a_read_that_does_not_need_what_is_damaged_answers(filled: Filled) -> None:
    tick, source = 1, source_of(filled)
    before = set(folder(filled).glob("*.parquet"))
    filled.feed(source, RECORDS[:2])
    (new,) = set(folder(filled).glob("*.parquet")) - before
    new.unlink()
    assert read_table(filled.catalog, filled.root, "bad", tick=tick).num_rows == 6
    assert statuses(filled)["bad"].startswith("live")
    with pytest.raises(DamagedTable, match="is missing"):
        read(filled, "bad")


def test_a_check_finds_marks_and_clears(filled: Filled, tmp_path: Path) -> None:
    assert check(filled, "bad") == check(filled, "bad", deep=True) == []
    file = one_file(folder(filled))
    file.rename(kept := tmp_path / "kept")
    assert check(filled, "bad") == [f"{file.parent.name}/{file.name} is missing"]
    assert check(filled, "good") == []
    assert statuses(filled)["bad"].startswith("damaged")
    kept.rename(file)
    assert check(filled, "bad") == []
    assert statuses(filled)["bad"] == "live  "
    assert relation(filled, "bad")[0] != "failed"


@pytest.mark.parametrize("role", ["data", "errors"])
def test_a_damaged_log_is_found_by_who_reads_and_healed_by_a_new_generation(filled: Filled, role: str) -> None:
    log = folder(filled, role=role) / "_delta_log"
    os.truncate(log / f"{2:020d}.json", 40)
    with pytest.raises(DamagedTable) as raised:
        read_table(filled.catalog, filled.root, "bad", Query(errors=role == "errors"))
    assert f"{2:020d}.json is not whole" in raised.value.line
    for inside in ("Kernel", "ParsedLogPath", "{", "0: <"):
        assert inside not in raised.value.line
    heal(filled)
    assert read(filled, "bad") == [*RECORDS, RECORDS[0]]
    assert statuses(filled)["bad"] == "live  "
    assert relation(filled, "bad")[1] is None
    assert check(filled, "bad", deep=True) == []


def test_a_deleted_file_is_healed_by_a_new_generation(filled: Filled) -> None:
    one_file(folder(filled)).unlink()
    assert check(filled, "bad")
    heal(filled)
    assert read(filled, "bad") == [*RECORDS, RECORDS[0]]
    assert statuses(filled)["bad"] == "live  "
    assert check(filled, "bad", deep=True) == []


def heal(filled: Filled) -> None:
    """What RESNAPSHOT, a backfill and the next tick do."""
    source = source_of(filled)
    with filled.catalog.write() as session:
        table_id = find_table(session, ("public", "bad")).id
        backfill_id = resnapshot_table(session, table_id)
    store = CatalogBackfillStore(filled.catalog, source, backfill_id)
    holder = store.claim(JobId("backfill-1"))
    (member,) = store.members([table_id])
    for tick in store.ticks(1, 10):
        done = filled.write(member, tick, RECORDS[tick.lower[0] : tick.upper[0]])
        store.follow(holder, first=tick.number, last=tick, outcomes={table_id: done}, stats={})
    with filled.catalog.write() as session:
        assert arm_table(session, table_id)
    filled.feed(source, RECORDS[:1])


def test_what_a_writer_finds_is_marked_too(filled: Filled) -> None:
    with filled.catalog.read() as session:
        table = find_table(session, ("public", "bad"))
        collection_id = session.scalars(
            select(CollectionRow.id).where(CollectionRow.table_id == table.id, CollectionRow.role == "data")
        ).one()
    CatalogBackfillStore(filled.catalog, table.source_id, "b1").note_damage(collection_id, "x is missing")  # type: ignore[arg-type]
    assert statuses(filled)["bad"].startswith("damaged x is missing")
    assert statuses(filled)["good"] == "live  "


def test_nothing_is_blamed_on_a_table_that_was_only_read_too_late(filled: Filled) -> None:
    """Its files were let go of while it was read: the catalog no longer answers for that time."""
    with filled.catalog.write() as session:
        table = find_table(session, ("public", "bad"))
        session.execute(text("UPDATE tables SET since = upper WHERE id = :id"), {"id": table.id})
    one_file(folder(filled)).unlink()
    with pytest.raises(Exception) as raised:
        read_table(filled.catalog, filled.root, "bad", as_of_ms=table.since)
    assert not isinstance(raised.value, DamagedTable)
