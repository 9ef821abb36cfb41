"""What is put into a collection's folder: flushed whole or an error, and listed from a version on."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.storage.collections.vectors import puts


def test_a_flush_of_nothing_is_none(tmp_path: Path) -> None:
    puts.flush(str(tmp_path), ())


@pytest.mark.parametrize("missing", range(3))
def test_a_flush_fails_whichever_file_is_not_there(tmp_path: Path, missing: int) -> None:
    names = ["a", "folder/b", "c"]
    for name in names:
        puts.write_file(str(tmp_path), name, b"1")
    puts.flush(str(tmp_path), names)
    Path(tmp_path, names[missing]).unlink()
    with pytest.raises(FileNotFoundError):
        puts.flush(str(tmp_path), names)


def test_a_listing_has_what_stands_at_a_version_and_above(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    names = [f"{version:020d}.json" for version in (0, 8, 9, 10)]
    names += [f"{version:020d}.checkpoint.parquet" for version in (0, 10)]
    names += [f"{9:020d}.checkpoint.0000000001.0000000002.parquet", "_last_checkpoint", f".{11:020d}.json.tmp"]
    for name in names:
        (log / name).touch()
    assert puts.list_entries(str(tmp_path), 9) == ((9, 10), (9, 10))
    assert puts.list_entries(str(tmp_path), 11) == ((), ())
