"""What it takes to read one tick of a change stream: its own files, however many ticks there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from airflow_provider_mzshare import MzShare, connect
from airflow_provider_mzshare.storage.collections.log import entry_path, open_filesystem, read_entry
from tests.support.opened import opened
from tests.support.ticked_load import NAME, TickedLoad

CHANGES = 40
EARLY, LATE = 10, 50
"""Ticks that there have been."""


@contextmanager
def steps() -> Iterator[list[int]]:
    """Steps that SQLite's machine has made for the statements inside: their work, whatever else the machine does."""
    counted, seen = [0], []

    def count() -> int:
        counted[0] += 1
        return 0

    def watch(_: object, cursor: sqlite3.Cursor, *__: Any) -> None:
        cursor.connection.set_progress_handler(count, 1)
        seen.append(cursor.connection)

    event.listen(Engine, "before_cursor_execute", watch)
    try:
        yield counted
    finally:
        event.remove(Engine, "before_cursor_execute", watch)
        for connection in seen:
            connection.set_progress_handler(None, 0)


def read(mz: MzShare, at: int) -> int:
    with mz.changes(NAME, as_of=at, up_to=at + 1, snapshot=False) as batches:
        return int(batches.read_all().num_rows)


@pytest.mark.parametrize("keyed", [True, False])
def test_a_tick_is_read_from_its_own_files_and_costs_the_same_later(tmp_path: Path, keyed: bool) -> None:
    """Nothing is counted in seconds. The folder of the log is not even listed."""
    load, costs = TickedLoad(tmp_path / "home", 1_000, keyed=keyed), []
    with connect(home=load.home) as mz:
        for number in (EARLY, LATE):
            load.run(number - len(load.ticks), CHANGES)
            for at, version in (load.ticks[3], load.ticks[number // 2], load.ticks[-1]):
                # Of 100 changes, 90 change a row that there was, 5 are new, 5 go.
                rows = CHANGES * 19 // 10 if keyed else CHANGES
                with steps() as once:
                    assert read(mz, at) == rows
                with opened(load.path) as files, steps() as again:
                    assert read(mz, at) == rows
                entry = read_entry(open_filesystem(str(load.path)), version)
                assert entry is not None
                assert set(files) == {entry_path(version), *(entry.changes() if keyed else entry.added())}
                # A connection that the pool opens just then reads the whole schema first.
                costs.append(min(once[0], again[0]))
    load.close()
    assert max(costs) <= 1.1 * max(costs[:3]), f"steps of the catalog: {costs}"
