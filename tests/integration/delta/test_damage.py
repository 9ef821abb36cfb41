"""What is damaged of a collection is found and named; what is whole is not complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_provider_mzshare.errors import WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.audit import transactions
from airflow_provider_mzshare.storage.collections.check import Known, check_collection
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.damage import DamagedCollection
from airflow_provider_mzshare.storage.collections.expiry import expire
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from tests.support.delta import NAME, ROWS, new_collection, read_arrow, time_of, write_tick

TICKS = 24


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    collection = new_collection(tmp_path_factory.mktemp("whole"))
    for tick in range(1, TICKS + 1):
        write_tick(collection, tick)
    return Path(collection.uri)


@pytest.fixture
def folder(tmp_path: Path, whole: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / NAME))


def known(folder: Path, **changes: object) -> Known:
    rows = read_arrow(str(folder.parent), NAME, TICKS, with_system_columns=True)
    told = {"ticks": {n: time_of(n) for n in range(1, TICKS + 1)}, "rows": TICKS * ROWS, "hash": hash_table(rows)}
    return Known(**{**told, **changes})  # type: ignore[arg-type]


def damages(folder: Path, told: Known | None = None, *, deep: bool = False) -> list[str]:
    return [str(damage) for damage in check_collection(str(folder.parent), NAME, told, deep=deep).damages]


def first_file(folder: Path) -> Path:
    return min(folder.glob("*.parquet"))


def entry(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020d}.json"


def checkpoint(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def flip(file: Path, at: int = 40) -> None:
    """Other bytes, the same size."""
    content = bytearray(file.read_bytes())
    content[at : at + 20] = bytes(b ^ 0xFF for b in content[at : at + 20])
    file.write_bytes(bytes(content))


def test_a_whole_collection_is_told_to_be_whole_also_after_compaction_and_expiry(folder: Path) -> None:
    told, root = known(folder), str(folder.parent)
    found = check_collection(root, NAME, told, deep=True)
    assert (found.damages, found.entries, found.files) == ((), TICKS + 1, TICKS)
    assert found.bytes == sum(file.stat().st_size for file in folder.glob("*.parquet"))
    collection = Collection.open(root, NAME)
    assert compact(collection, min_files=2).done
    write_tick(collection, TICKS + 1)
    later = Known({**told.ticks, TICKS + 2: time_of(TICKS + 1)}, first=22)
    assert damages(folder, later) == []
    expire(collection, keep_from_version=22, now=datetime.now(timezone.utc) + timedelta(days=3))
    assert not entry(folder, 0).exists()
    assert damages(folder, later) == []
    assert damages(folder, Known(later.ticks, (TICKS + 1) * ROWS, newest_hash(folder, TICKS + 2)), deep=True) == []


def newest_hash(folder: Path, version: int) -> int:
    return hash_table(read_arrow(str(folder.parent), NAME, version, with_system_columns=True))


FILES: dict[str, tuple[Callable[[Path], object], str, bool]] = {
    "gone": (lambda d: first_file(d).unlink(), "is missing", False),
    "cut off": (lambda d: os.truncate(first_file(d), 200), "has 200 bytes, but the log says", False),
    "footer": (lambda d: flip(first_file(d), -30), "cannot be read: its footer is damaged", False),
    "pages": (lambda d: flip(first_file(d)), "", True),
}


@pytest.mark.parametrize("what", FILES)
def test_a_damaged_file_is_named(folder: Path, what: str) -> None:
    spoil, problem, is_deep = FILES[what]
    told, name = known(folder), first_file(folder).name
    spoil(folder)
    if is_deep:
        assert damages(folder, told) == [], "a look at footers does not see it"
    (found,) = damages(folder, told, deep=is_deep)
    assert found.startswith((f"{name} {problem}", "its files do not hold the rows"))


LOGS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "cut off": (lambda d: os.truncate(entry(d, 23), 300), entry(Path(), 23).name, "holds no valid JSON"),
    "cut off, under a checkpoint": (lambda d: os.truncate(entry(d, 5), 300), entry(Path(), 5).name, "no valid JSON"),
    "empty": (lambda d: os.truncate(entry(d, 23), 0), entry(Path(), 23).name, "holds no commit"),
    "gone in the middle": (lambda d: entry(d, 22).unlink(), entry(Path(), 22).name, "is missing"),
    "gone at the end": (lambda d: entry(d, 24).unlink(), entry(Path(), 24).name, "the catalog knows 1 ticks"),
    "checkpoint": (
        lambda d: os.truncate(checkpoint(d, 19), 300),
        checkpoint(Path(), 19).name,
        "not a readable checkpoint",
    ),
    "checkpoint gone": (lambda d: checkpoint(d, 19).unlink(), "_last_checkpoint", "points to checkpoint 19"),
    "pointer": (lambda d: (d / "_delta_log" / "_last_checkpoint").write_text("{"), "_last_checkpoint", "not whole"),
}


@pytest.mark.parametrize("what", LOGS)
def test_a_damaged_log_is_named(folder: Path, what: str) -> None:
    spoil, name, problem = LOGS[what]
    told = known(folder)
    spoil(folder)
    (found,) = damages(folder, told)
    assert found.startswith(f"_delta_log/{name} ")
    assert problem in found


def test_a_log_that_carries_other_ticks_than_the_catalog_knows_is_told(folder: Path) -> None:
    told = known(folder)
    (other,) = damages(folder, Known({**told.ticks, 7: 12345}))
    assert other.startswith(f"_delta_log/{entry(folder, 7).name} carries the tick at {time_of(7)}, but the catalog")
    assert damages(folder, Known(told.ticks, rows=told.rows + 1, hash=told.hash), deep=True) == [
        f"its files hold {TICKS * ROWS} rows, but the catalog says {TICKS * ROWS + 1}"
    ]
    (differ,) = damages(folder, Known(told.ticks, rows=told.rows, hash=told.hash + 1), deep=True)
    assert "hashes differ" in differ


def test_a_folder_that_is_gone_is_one_damage_not_many(folder: Path, tmp_path: Path) -> None:
    told = known(folder)
    folder.rename(tmp_path / "elsewhere")
    assert damages(folder, told) == ["_delta_log is missing, and so is its folder"]


@pytest.mark.parametrize("what", ["cut off", "gone in the middle", "checkpoint"])
def test_who_opens_a_damaged_log_is_told_what_is_damaged_and_nothing_of_a_librarys_insides(
    folder: Path, what: str
) -> None:
    spoil, name, problem = LOGS[what]
    spoil(folder)
    with pytest.raises(DamagedCollection) as raised:
        Collection.open(str(folder.parent), NAME)
    assert name in raised.value.line
    assert problem in raised.value.line
    for inside in ("Kernel", "ParsedLogPath", "unknown", "{", "Parquet"):
        assert inside not in raised.value.line


def test_a_storage_that_does_not_answer_is_not_taken_for_a_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(*_: object, **__: object) -> None:
        raise OSError("Generic LocalFileSystem error\n ↳ Input/output error (os error 5)")

    monkeypatch.setattr("airflow_provider_mzshare.storage.collections.collection.DeltaTable", no_answer)
    with pytest.raises(WarehouseUnreachable):
        Collection.open(str(folder.parent), NAME)


def test_what_is_whole_has_its_ticks(folder: Path) -> None:
    assert len(transactions(Collection.open(str(folder.parent), NAME))) == TICKS
