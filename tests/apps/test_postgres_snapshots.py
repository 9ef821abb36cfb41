"""Tables of a Postgres that others write to all the time: at every tick that can be read they are what all transactions
before its end make, as another decoder of the log says, whatever dies while snapshots are taken."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_mzshare.storage.apps import snapshots
from airflow_provider_mzshare.storage.crashpoints import SNAPSHOT_LABELS
from tests.support.postgres_stack import PostgresStack
from tests.support.postgres_truth import Truth, prepare, writing
from tests.support.upstream_postgres import CONNECTION, Database
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("a", "b")


@pytest.fixture
def stack(
    tmp_path: Path, spark: SparkSession, upstream: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresStack]:
    prepare(upstream, *TABLES)
    upstream.publish(*TABLES)
    server = {"host": "127.0.0.1", "port": upstream.server.port}
    given = {"conn_type": "postgres", "login": upstream.user, "schema": upstream.name, **server}
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(given))
    made = PostgresStack(tmp_path / "home", spark, upstream)
    yield made
    made.close()


def check(stack: PostgresStack, at_least: int = 3) -> None:
    truth = Truth(stack.database, TABLES)
    for name in TABLES:
        assert stack.check(name, truth) >= at_least


def test_tables_are_exact_at_every_tick_while_others_write(stack: PostgresStack) -> None:
    """One is there first, the other comes late, and the first is read anew."""
    with writing(stack.database, TABLES):
        stack.add("a")
        with stack.ingesting():
            first = stack.start_backfill("a")
            stack.wait_live(["a"])
            stack.add("b")
            stack.mz.sql("ALTER TABLE a RESNAPSHOT")
            again = [stack.start_backfill(name) for name in TABLES]
            stack.wait_live(TABLES)
            stack.wait_for_all()
            assert [app.join().state for app in (first, *again)] == ["finished"] * 3
    check(stack)


class Died(BaseException):
    """What nobody handles: the app goes without releasing its lease or noting anything."""


@pytest.mark.parametrize("label", SNAPSHOT_LABELS)
def test_a_run_that_dies_is_followed_by_one_that_goes_on(
    stack: PostgresStack, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = threading.Event()

    def die(passed: str) -> None:
        if passed == label and not died.is_set():
            died.set()
            raise Died(label)

    monkeypatch.setattr(snapshots, "crashpoint", die)
    with writing(stack.database, TABLES, seed=1):
        stack.add(*TABLES)
        with stack.ingesting():
            first = stack.start_backfill("a")
            wait_until(died.is_set, 120, f"the death at {label}")
            assert first.join().state == "failed"
            second = stack.start_backfill("a")
            stack.wait_live(TABLES)
            stack.wait_for_all()
            assert second.join().state == "finished"
    check(stack)


def test_a_table_that_is_truncated_while_it_is_read_gets_another_snapshot(
    stack: PostgresStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has its snapshot by then."""
    taken = []

    def truncate(passed: str) -> None:
        if passed == "snapshot_taken":
            taken.append(passed)
        if taken == ["snapshot_taken"] and passed == "snapshot_taken":
            stack.database.run("TRUNCATE a", "INSERT INTO a VALUES (7, 7, 'after')")

    monkeypatch.setattr(snapshots, "crashpoint", truncate)
    stack.add(*TABLES)
    with stack.ingesting():
        app = stack.start_backfill("a")
        stack.wait_live(TABLES)
        stack.wait_for_all()
        assert app.join().state == "finished"
    assert len(taken) == 2
    check(stack, at_least=1)


def test_a_row_that_cannot_be_decoded_stalls_its_table_with_advice(stack: PostgresStack) -> None:
    stack.database.run("ALTER TABLE a ADD at date", "UPDATE a SET at = 'infinity' WHERE id = 5")
    stack.add(*TABLES)
    with stack.ingesting():
        app = stack.start_backfill("a")
        wait_until(lambda: stack.state("a").status == "stalled", 120, "the stall")
        stack.wait_live(["b"])
        app.join()
    reason = stack.state("a").reason or ""
    assert 'a row of its snapshot cannot be decoded: field "at": ' in reason
    assert "Name the column in TEXT COLUMNS" in reason
