"""Processes that race on one collection: every tick once, every row once, every version for ever the same."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_mzshare.storage.collections import audit
from tests.support.delta import new_collection, read_rows, rows_of, time_of
from tests.support.delta_race import Racer, race

TICKS = 50


def test_five_writers_of_the_same_ticks_leave_each_tick_once(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    won = race(str(tmp_path), [Racer("write", TICKS)] * 5)
    commits = audit.transactions(collection)
    assert [c.mz_timestamp for c in commits] == [time_of(tick) for tick in range(1, TICKS + 1)]
    versions = {int(c.metadata["mz_tick"]): c.version for c in commits}
    claims = [claim for writer in won for claim in writer.items()]
    assert len(claims) == len(set(claims)), "two writers say that they wrote the same tick"
    assert set(claims) <= set(versions.items())
    assert sum(bool(writer) for writer in won) > 1, "the writers did not race"
    assert read_rows(collection) == rows_of(range(1, TICKS + 1))


def test_writers_beside_compactors_leave_each_row_once_and_each_version_as_it_was(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    racers = [Racer("write", TICKS), Racer("write", TICKS), Racer("compact"), Racer("compact"), Racer("compact")]
    answers = race(str(tmp_path), racers)
    assert sum(answer for answer in answers if isinstance(answer, int)) > 0, "nothing was compacted"
    commits = audit.transactions(collection)
    assert [c.mz_timestamp for c in commits] == [time_of(tick) for tick in range(1, TICKS + 1)]
    for number, commit in enumerate(commits, start=1):
        assert read_rows(collection, commit.version) == rows_of(range(1, number + 1))
    assert read_rows(collection) == rows_of(range(1, TICKS + 1))
