"""A real database's changes are written down: whatever dies or is cut, each transaction is there whole and once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.postgres import slot
from airflow_provider_mzshare.connectors.postgres.connector import PostgresConnector
from airflow_provider_mzshare.connectors.postgres.identity import slot_name
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.storage.crashpoints import RECORDER_LABELS
from tests.support.catalog import new_sqlite
from tests.support.recording import ACCOUNTS, EACH, TABLES, Recording, end_process, fill, make_tables, move, moving
from tests.support.upstream_postgres import Database
from tests.support.waiting import wait_until

MOVES = 60
TOTAL = len(TABLES) * ACCOUNTS * EACH


@pytest.fixture
def recording(upstream: Database, tmp_path: Path) -> Iterator[Recording]:
    make_tables(upstream)
    with Catalog(new_sqlite(tmp_path / "catalog.db")) as catalog:
        found = Recording(catalog, tmp_path, (upstream.server.port, upstream.name))
        found.begin()
        yield found


def reaches(recording: Recording, upstream: Database, seconds: float = 60) -> None:
    """All that is committed by now is announced."""
    end = int(upstream.value("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn"))
    wait_until(lambda: recording.boundary >= end, seconds, "the recorder")


def begins(recording: Recording) -> None:
    """The slot is there: what is committed from now on comes."""
    wait_until(lambda: recording.boundary > 0, 60, "the slot")


def check_rows(recording: Recording, upstream: Database) -> None:
    recording.read_on()
    for name in TABLES:
        rows = {str(key): amount for key, amount in upstream.rows(f"SELECT id, amount FROM {name}")}
        assert recording.states[name] == rows


def test_what_is_committed_is_there_soon_and_an_idle_server_comes_to_its_end(
    recording: Recording, upstream: Database
) -> None:
    with recording.recorder() as recorder:
        begins(recording)
        fill(upstream)
        reaches(recording, upstream)
        assert recording.read_on() == len(TABLES) * ACCOUNTS
        # Of tables that nobody publishes; afterwards nothing comes that would be told.
        upstream.run("CREATE UNLOGGED TABLE other (id int)", "SELECT pg_switch_wal()")
        reaches(recording, upstream)
        assert recording.read_on() == 0
        recorder.check()
        assert recorder.trouble is None
    assert recording.total() == TOTAL


@pytest.mark.parametrize("label", RECORDER_LABELS)
def test_a_recorder_that_is_killed_at_once_leaves_whole_transactions(
    recording: Recording, upstream: Database, label: str
) -> None:
    killed_at(recording, upstream, f"{label}@1")


@pytest.mark.full(seconds=200)
@pytest.mark.parametrize("label", RECORDER_LABELS)
def test_a_recorder_that_is_killed_anywhere_leaves_whole_transactions(
    recording: Recording, upstream: Database, label: str
) -> None:
    killed_at(recording, upstream, f"{label}@3")


def killed_at(recording: Recording, upstream: Database, label: str) -> None:
    """If it comes there: a label that it does not pass so often is one that nothing happens at."""
    chance = random.Random(label)
    process = recording.process(label)
    try:
        wait_until(lambda: recording.boundary > 0 or process.poll() is not None, 60, "the recorder")
        if not recording.boundary:
            end_process(process)
            process = recording.process()
            begins(recording)
        fill(upstream)
        for _ in range(MOVES):
            if process.poll() is not None:
                break
            move(upstream, chance)
            recording.read_on()
            assert recording.total() in (0, TOTAL)
    finally:
        end_process(process)
    with recording.recorder():
        move(upstream, chance)
        reaches(recording, upstream)
    check_rows(recording, upstream)
    assert recording.total() == TOTAL


def test_one_that_is_killed_again_and_again_under_load(recording: Recording, upstream: Database) -> None:
    with recording.recorder():
        begins(recording)
        fill(upstream)
        reaches(recording, upstream)
    with moving(upstream, 1):
        for round_ in range(4):
            process = recording.process(f"segment_written@{2 + round_}")
            wait_until(lambda process=process: process.poll() is not None, 60, "the recorder")  # type: ignore[misc]
            recording.read_on()
            assert recording.total() == TOTAL
    with recording.recorder():
        reaches(recording, upstream)
    check_rows(recording, upstream)
    # Read once more from the beginning, at other boundaries: the same.
    again = Recording(recording.catalog, recording.folder, recording.where, recording.incarnation)
    again.read_on(recording.at)
    assert again.states == recording.states
    for max_records in (1, 50, 100_000):
        streamed = Recording(recording.catalog, recording.folder, recording.where, recording.incarnation)
        sizes = []
        for size in streamed.stream_on(max_records):
            sizes.append(size)
            assert streamed.total() in (0, TOTAL)
        assert streamed.states == recording.states
        assert streamed.at == recording.at
    assert sizes == [sum(sizes)]


def test_a_connection_that_is_cut_begins_again_at_the_last_boundary(recording: Recording, upstream: Database) -> None:
    with recording.recorder() as recorder:
        begins(recording)
        fill(upstream)
        with moving(upstream, 2):
            for _ in range(3):
                before = recording.boundary
                upstream.run("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
                wait_until(lambda before=before: recording.boundary > before, 60, "the recorder")  # type: ignore[misc]
        recorder.check()
    with recording.recorder():
        reaches(recording, upstream)
    check_rows(recording, upstream)


def test_a_slot_that_somebody_dropped_or_moved_is_told_and_nothing_skipped(
    recording: Recording, upstream: Database
) -> None:
    name = slot_name(recording.journal.journal)
    with recording.recorder():
        begins(recording)
        fill(upstream)
        reaches(recording, upstream)
    move(upstream, random.Random(3))
    wait_until(lambda: not upstream.value("SELECT active FROM pg_replication_slots"), 30, "the recorder")
    upstream.run(f"SELECT pg_replication_slot_advance('{name}', pg_current_wal_flush_lsn())")
    assert refused(recording) == "slot_moved"
    upstream.run(f"SELECT pg_drop_replication_slot('{name}')")
    assert refused(recording) == "slot_missing"
    assert upstream.slots() == []


def refused(recording: Recording) -> str:
    with recording.recorder() as recorder, pytest.raises(UpstreamChanged) as caught:
        wait_until(lambda: recorder.check() is not None, 60, "the recorder")
    return caught.value.reason


def test_a_publication_that_is_gone_stops_the_recorder(recording: Recording, upstream: Database) -> None:
    with recording.recorder() as recorder:
        begins(recording)
        fill(upstream)
        reaches(recording, upstream)
        upstream.run("DROP PUBLICATION pub")
        move(upstream, random.Random(4))
        with pytest.raises(UpstreamChanged, match="publication") as caught:
            wait_until(lambda: recorder.check() is not None, 60, "the recorder")
    assert caught.value.reason == "publication_missing"
    assert refused(recording) == "publication_missing"


def test_a_slot_that_is_in_use_is_waited_for(recording: Recording, upstream: Database) -> None:
    with recording.recorder():
        begins(recording)
        other: PostgresConnector = recording.connector()
        with pytest.raises(Exception, match="in use"):
            other.feed(recording.boundary)


def test_the_server_forgets_only_what_a_committed_tick_has_read(recording: Recording, upstream: Database) -> None:
    name = slot_name(recording.journal.journal)

    def confirmed() -> int:
        with upstream.connect() as session:
            found = slot.look(session, name)
        return found.confirmed if found else 0

    with recording.recorder():
        begins(recording)
        fill(upstream)
        reaches(recording, upstream)
        begin = confirmed()
        recording.read_on()
        wait_until(lambda: confirmed() >= recording.at, 30, "the recorder")
        assert begin < recording.at
        committed = recording.at
        move(upstream, random.Random(5))
        reaches(recording, upstream)
        assert confirmed() == committed < recording.boundary
