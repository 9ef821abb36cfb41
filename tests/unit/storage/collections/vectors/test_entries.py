"""The lines of our own log entries: what they say of a file, they say as Delta reads it."""

from __future__ import annotations

import json

import numpy as np

from airflow_provider_mzshare.storage.collections.log import Entry
from airflow_provider_mzshare.storage.collections.vectors import entries
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector, bitmap_of, vector_file
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile

STATS = json.dumps({"numRecords": 9, "minValues": {"n": 1}, "maxValues": {"n": 8}, "nullCount": {"n": 0}})
PLAIN = LiveFile("part-1.parquet", 123, STATS, 1_700_000_000_000)
VECTOR: Vector = vector_file([bitmap_of(np.array([2, 5]))]).vectors[0]


def read(*actions: entries.Action) -> Entry:
    """As it comes back from the log."""
    return Entry(7, tuple(json.loads(line) for line in entries.to_bytes(actions).decode().splitlines()))


def test_an_entry_has_a_line_for_each_action_and_no_other() -> None:
    content = entries.to_bytes([entries.transaction("u1", 5), entries.add(PLAIN, data_change=True)])
    assert content.endswith(b"}\n")
    assert content.count(b"\n") == 2
    assert entries.to_bytes([]) == b""
    line_ends = entries.to_bytes([entries.commit_info("id", "MERGE", {"mz_tick": "a\nb"})])
    assert line_ends.count(b"\n") == 1


def test_a_file_comes_back_as_it_was() -> None:
    for file in (PLAIN, LiveFile("p", 1, "", 5)):
        (add,) = read(entries.add(file, data_change=True)).actions
        assert LiveFile.from_log(add["add"]) == file
        assert add["add"]["dataChange"] is True
        assert "deletionVector" not in add["add"]
    (moved,) = read(entries.add(PLAIN, data_change=False)).actions
    assert moved["add"]["dataChange"] is False


def test_the_statistics_of_a_file_with_a_vector_are_bounds_only() -> None:
    (add,) = read(entries.add(PLAIN.with_vector(VECTOR), data_change=True)).actions
    stats = json.loads(add["add"]["stats"])
    assert stats == {**json.loads(STATS), "tightBounds": False}
    found = LiveFile.from_log(add["add"])
    assert (found.vector, found.deleted, found.rows) == (VECTOR, 2, 9)
    (bare,) = read(entries.add(LiveFile("p", 1, "", 5, VECTOR), data_change=True)).actions
    assert json.loads(bare["add"]["stats"]) == {"tightBounds": False}
    assert LiveFile.from_log(bare["add"]).rows is None


def test_a_removal_names_the_vector_that_the_file_has_had() -> None:
    (plain,) = read(entries.remove(PLAIN, data_change=False)).actions
    (masked,) = read(entries.remove(PLAIN.with_vector(VECTOR), data_change=True)).actions
    assert "deletionVector" not in plain["remove"]
    assert Vector.from_log(masked["remove"]["deletionVector"]) == VECTOR
    assert (masked["remove"]["path"], masked["remove"]["size"]) == (PLAIN.path, PLAIN.size)
    assert (plain["remove"]["dataChange"], masked["remove"]["dataChange"]) == (False, True)


def test_an_entry_is_known_by_its_id_and_carries_its_tick() -> None:
    one, other = entries.new_entry_id(), entries.new_entry_id()
    assert one != other
    entry = read(
        entries.commit_info(one, "MERGE", {"mz_tick": "3", "mz_hash": "ff"}),
        entries.transaction("u1-keyed", 1_700_000_000_123),
        entries.changes("_change_data/cdc-1.parquet", 55),
    )
    assert entry.entry_id == one
    tick = entry.tick("u1-keyed")
    assert tick is not None
    assert (tick.mz_timestamp, dict(tick.metadata)) == (1_700_000_000_123, {"mz_tick": "3", "mz_hash": "ff"})
    assert entry.tick("another") is None
    assert list(entry.changes()) == ["_change_data/cdc-1.parquet"]
    (change,) = (action["cdc"] for action in entry.actions if "cdc" in action)
    assert change["dataChange"] is False
