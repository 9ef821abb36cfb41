"""What of a journal goes, and what it refuses: never anything that a table needs."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.journal_room import JournalFull
from airflow_provider_mzshare.control.lifecycle.typed_names import find_source
from airflow_provider_mzshare.control.supervision.maintenance import Maintained, maintain
from airflow_provider_mzshare.control.upstreams import open_records, open_upstream
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.rules import JournalBehind
from airflow_provider_mzshare.core.journal.state import folder_of
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Left
from airflow_provider_mzshare.errors import StatementError, UnknownItem, UpstreamChanged
from tests.support.inbox import Inbox
from tests.support.waiting import wait_until

PUSHES, EACH = 5, 4
LATER = 4_000_000_000_000
"""A time at which everything is old."""


def filled(inbox: Inbox) -> None:
    """Each push has a file of its own."""
    for push in range(PUSHES):
        inbox.mz.push("inbox", [f"{push}-{n}" for n in range(EACH)])
    inbox.mz.sql("ALTER SOURCE inbox SET (RETAIN JOURNAL FOR '1 hour')")


def maintained(inbox: Inbox, now_ms: int | None = None) -> list[Maintained]:
    done = maintain(inbox.catalog, inbox.root, grace=timedelta(0), now_ms=now_ms)
    assert not [each.trouble for each in done if each.trouble]
    return done


def advance(inbox: Inbox, to: int) -> None:
    """The tables get a tick that ends there."""
    source = find_source(inbox.catalog, "inbox")
    store = CatalogTickStore(inbox.catalog, source.id)
    holder = store.claim(JobId("app"), stood_still=store.lease())
    state = store.load()
    tick = store.mint(holder, lower=state.upper, upper=Position({"0": to}), incarnation=source.incarnation)
    store.commit(holder, tick.number, {table: Done() for table in store.load().members}, {})


def files(inbox: Inbox) -> int:
    return len(list(Path(inbox.root, folder_of(inbox.store.journal)).rglob("*.journal")))


def begin(inbox: Inbox) -> int:
    return inbox.store.partition(0).load().begin


def test_what_is_old_and_needed_by_nobody_goes_after_a_while(inbox: Inbox) -> None:
    filled(inbox)
    inbox.mz.sql("CREATE TABLE t FROM SOURCE inbox FORMAT TEXT")
    maintained(inbox, LATER)
    assert begin(inbox) == 0, "the table has not had any of it"
    advance(inbox, 2 * EACH + 1)
    maintained(inbox)
    assert begin(inbox) == 0, "none of it is old"
    size = inbox.store.partition(0).load().size
    maintained(inbox, LATER)
    assert (begin(inbox), files(inbox)) == (2 * EACH, PUSHES), "whoever has begun to read may go on"
    (removed,) = maintained(inbox, LATER)[-1:]
    assert (removed.data_files, files(inbox)) == (2, PUSHES - 2)
    assert inbox.store.partition(0).load().size == size - removed.bytes
    assert texts(inbox, 2 * EACH) == [f"{push}-{n}" for push in range(2, PUSHES) for n in range(EACH)]
    check_told_of_what_is_gone(inbox)


def texts(inbox: Inbox, first: int) -> list[str]:
    source = find_source(inbox.catalog, "inbox")
    journals = journals_of(inbox.catalog, inbox.root)
    with open_records(FixedConnections({}), source.spec, source.incarnation, journals=journals) as records:
        batches = records.read(0, first, PUSHES * EACH)
        return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def check_told_of_what_is_gone(inbox: Inbox) -> None:
    source = find_source(inbox.catalog, "inbox")
    with open_upstream(
        FixedConnections({}), source.spec, source.incarnation, journals=journals_of(inbox.catalog)
    ) as upstream:
        upstream.check_history(Position({"0": 2 * EACH}))
        with pytest.raises(UpstreamChanged, match="2 records are gone") as gone:
            upstream.check_history(Position({"0": 2 * EACH - 2}))
        assert gone.value.reason == "history_gone"


def test_a_stalled_table_keeps_what_it_needs_and_without_tables_age_alone_counts(inbox: Inbox) -> None:
    filled(inbox)
    inbox.mz.sql("CREATE TABLE t FROM SOURCE inbox FORMAT TEXT; CREATE TABLE u FROM SOURCE inbox FORMAT TEXT")
    advance(inbox, EACH)
    with inbox.catalog.read() as session:
        table = items.find_table(session, ("public", "u"))
    store = CatalogTickStore(inbox.catalog, table.source_id)
    holder = store.claim(JobId("app"), stood_still=store.lease())
    tick = store.mint(holder, lower=store.load().upper, upper=Position({"0": 20}), incarnation=store.load().incarnation)
    others = {each: Done() for each in store.load().members if each != table.id}
    store.commit(holder, tick.number, {**others, table.id: Left("it could not be written")}, {})
    maintained(inbox, LATER)
    assert begin(inbox) == EACH
    inbox.mz.sql("DROP TABLE u; DROP TABLE t")
    maintained(inbox, LATER)
    assert begin(inbox) == (PUSHES - 1) * EACH, "the newest file stays: its writer may go on with it"


def test_without_retention_everything_stays(inbox: Inbox) -> None:
    filled(inbox)
    inbox.mz.sql("ALTER SOURCE inbox RESET (RETAIN JOURNAL FOR)")
    for _ in range(3):
        maintained(inbox, LATER)
    assert (begin(inbox), files(inbox)) == (0, PUSHES)


def test_a_full_journal_takes_nothing_until_it_may_be_larger(inbox: Inbox) -> None:
    inbox.mz.sql("ALTER SOURCE inbox SET (MAX JOURNAL '1MB')")
    inbox.mz.push("inbox", [os.urandom(1_200_000)])
    with pytest.raises(JournalFull, match="may have 1,048,576") as full:
        inbox.mz.push("inbox", ["one more"])
    assert "2MB" in full.value.hint
    assert len(inbox.values()) == 1
    inbox.mz.sql("ALTER SOURCE inbox SET (MAX JOURNAL '2MB')")
    inbox.mz.push("inbox", ["one more"])
    assert inbox.values()[1:] == [b"one more"]


def test_a_pusher_into_a_full_journal_is_told_that_its_source_is_dropped(inbox: Inbox) -> None:
    inbox.mz.sql("ALTER SOURCE inbox SET (MAX JOURNAL '1MB')")
    with inbox.mz.pusher("inbox") as pusher:
        pusher.push([os.urandom(1_200_000)])

        def told() -> type[BaseException] | None:
            try:
                pusher.push(["one more"])
            except (JournalFull, UnknownItem) as error:
                return type(error)
            return None

        wait_until(lambda: told() is JournalFull, 20, "the journal to be full")
        inbox.mz.sql("DROP SOURCE inbox")
        wait_until(lambda: told() is UnknownItem, 20, "the end")


def test_nothing_is_pushed_behind_what_tables_have_been_given(inbox: Inbox) -> None:
    """The catalog was restored from an old copy, and its ticks were put back from the tables."""
    filled(inbox)
    inbox.mz.sql("CREATE TABLE t FROM SOURCE inbox FORMAT TEXT")
    advance(inbox, 2 * PUSHES * EACH)
    with pytest.raises(JournalBehind, match=r"it ends at 20, and tables have been given all up to 40"):
        inbox.mz.push("inbox", ["again"])
    assert len(inbox.values()) == PUSHES * EACH
    source = find_source(inbox.catalog, "inbox")
    opened = open_upstream(FixedConnections({}), source.spec, source.incarnation, journals=journals_of(inbox.catalog))
    with opened as upstream, pytest.raises(UpstreamChanged, match="restored from an old copy") as behind:
        upstream.check_history(Position({"0": 2 * PUSHES * EACH}))
    assert behind.value.reason == "journal_behind"


def test_only_journals_have_these_settings(inbox: Inbox) -> None:
    inbox.mz.sql("CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
    for words in ("RETAIN JOURNAL FOR '1 day'", "MAX JOURNAL '1GB'"):
        with pytest.raises(StatementError, match=r"only for sources that are read from a journal; .*g is a load gen"):
            inbox.mz.sql(f"ALTER SOURCE g SET ({words})")
        with pytest.raises(StatementError, match="only for sources that are read from a journal"):
            inbox.mz.sql(f"CREATE SOURCE h FROM LOAD GENERATOR COUNTER WITH ({words})")
