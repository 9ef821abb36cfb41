"""Many statements in one transaction: they mean what they mean one by one, and hold the catalog's lock for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.statements import run
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.errors import MzShareError
from tests.support.catalog import new_sqlite
from tests.support.statements import Session

MANY = 1_000
SOURCES = "CREATE SOURCE s FROM LOAD GENERATOR COUNTER; CREATE SOURCE r FROM LOAD GENERATOR COUNTER"
ALL_SQL = "SELECT id, create_sql FROM mz_catalog.mz_tables ORDER BY id"
FEW = 10
"""For 40 tables more. Not none: each transaction has a backfill of its own, whose job is looked for."""
HELD_SECONDS = 10.0
"""About a second on a machine that does nothing else."""


@pytest.fixture
def with_source(catalog_url: str) -> Iterator[Session]:
    scene = Session(catalog_url)
    scene.run(SOURCES)
    yield scene
    scene.catalog.close()


def together(statement: str, count: int, start: int = 0) -> str:
    each = (statement.format(n=n) for n in range(start, start + count))
    return f"BEGIN; {'; '.join(each)}; COMMIT"


@contextmanager
def locked_statements(catalog: Catalog) -> Iterator[list[str]]:
    """What is executed from the first statement that takes a lock on; one kind each has its own."""
    executed: list[str] = []
    locked = False

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        nonlocal locked
        locked = locked or statement == "BEGIN IMMEDIATE" or "FOR UPDATE" in statement
        if locked:
            executed.append(statement)

    event.listen(catalog._engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        event.remove(catalog._engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t{n} FROM SOURCE s",
        "CREATE TABLE t{n} FROM SOURCE s WITH (SNAPSHOT = false)",
        "CREATE TABLE IF NOT EXISTS old{n} FROM SOURCE s",
        "DROP TABLE old{n}",
    ],
)
def test_a_transaction_executes_as_many_statements_for_many_tables_as_for_few(
    with_source: Session, statement: str
) -> None:
    with_source.run(together("CREATE TABLE old{n} FROM SOURCE s", 48))
    with_source.tick({0: 5})
    costs = []
    for start, count in ((0, 4), (4, 44)):
        with locked_statements(with_source.catalog) as executed:
            with_source.run(together(statement, count, start))
        costs.append(len(executed))
    assert costs[1] - costs[0] < FEW


def test_a_swap_of_schemas_executes_as_many_statements_for_many_tables_as_for_few(with_source: Session) -> None:
    with_source.run("CREATE SCHEMA a; CREATE SCHEMA b")
    costs = []
    for start, count in ((0, 4), (4, 44)):
        with_source.run(together("CREATE TABLE a.t{n} FROM SOURCE s", count, start))
        with locked_statements(with_source.catalog) as executed:
            with_source.run("ALTER SCHEMA a SWAP WITH b FORCE; ALTER SCHEMA a SWAP WITH b FORCE")
        costs.append(len(executed))
    assert costs[0] == costs[1]


def test_a_thousand_tables_in_one_transaction_let_heartbeats_through(with_source: Session) -> None:
    store = CatalogTickStore(with_source.catalog, with_source.source("r").id)
    holder, done, gaps = store.claim(JobId("other")), threading.Event(), [0.0]

    def beat() -> None:
        while not done.is_set():
            began = time.monotonic()
            store.beat(holder)
            gaps.append(time.monotonic() - began)

    with ThreadPoolExecutor(1) as pool:
        beating = pool.submit(beat)
        try:
            for statement in ("CREATE TABLE t{n} FROM SOURCE s", "DROP TABLE t{n}"):
                began = time.monotonic()
                with_source.run(together(statement, MANY))
                print(f"{MANY} x {statement}: {time.monotonic() - began:.2f} s; a beat waited {max(gaps):.2f} s")
        finally:
            done.set()
        beating.result()
    assert max(gaps) < HELD_SECONDS
    assert with_source.names() == ["s", "r"]


# ── the same as one by one ────────────────────────────────────────────────────────────────────────────────────────────

SCRIPTS = {
    "a name twice": "CREATE TABLE t FROM SOURCE s; CREATE TABLE t FROM SOURCE s",
    "a name twice, if it is not there": "CREATE TABLE t FROM SOURCE s; CREATE TABLE IF NOT EXISTS t FROM SOURCE s",
    "the same name of another source": "CREATE TABLE t FROM SOURCE s; CREATE TABLE IF NOT EXISTS t FROM SOURCE r",
    "a table as a source": "CREATE TABLE t FROM SOURCE s; CREATE TABLE u FROM SOURCE t",
    "the name of a source": "CREATE TABLE t FROM SOURCE s; CREATE TABLE s FROM SOURCE s",
    "no such source": "CREATE TABLE t FROM SOURCE s; CREATE TABLE u FROM SOURCE nobody",
    "a schema of ours": "CREATE TABLE t FROM SOURCE s; CREATE TABLE mz_x.u FROM SOURCE s",
    "two sources": "CREATE TABLE a FROM SOURCE s; CREATE TABLE b FROM SOURCE r; CREATE TABLE c FROM SOURCE s",
    "no such reference": "CREATE TABLE t FROM SOURCE s; CREATE TABLE u FROM SOURCE s (REFERENCE x)",
    "the first of two errors": "CREATE TABLE old FROM SOURCE s; CREATE TABLE u FROM SOURCE nobody",
    "dropped and made again": "DROP TABLE old; CREATE TABLE old FROM SOURCE r",
    "dropped twice": "DROP TABLE old; DROP TABLE old",
    "dropped twice, if it is there": "DROP TABLE old; DROP TABLE IF EXISTS old; DROP TABLE IF EXISTS nobody",
    "dropped under a view": "DROP TABLE old; DROP TABLE viewed",
    "dropped with a view": "DROP TABLE viewed CASCADE; DROP TABLE v",
    "what is no table": "DROP TABLE old; DROP TABLE v",
    "in new schemas": "CREATE TABLE x.t FROM SOURCE s; CREATE TABLE y.t FROM SOURCE s; CREATE TABLE x.u FROM SOURCE s",
}


def answer(file: Path, script: str) -> object:
    """What it says, and what there is afterwards."""
    scene = Session(new_sqlite(file))
    with scene.catalog:
        scene.run(SOURCES)
        scene.run("CREATE TABLE old FROM SOURCE s; CREATE TABLE viewed FROM SOURCE s")
        scene.run("CREATE VIEW v AS SELECT counter FROM viewed")
        said: object
        try:
            said = scene.run(f"BEGIN; {script}; COMMIT")
        except MzShareError as error:
            said = type(error), error.line
        return said, [scene.rows(query) for query in ("SHOW TABLES", "SHOW VIEWS", "SHOW SCHEMAS", ALL_SQL)]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_statements_together_answer_as_they_do_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    together = answer(tmp_path / "together.db", script)
    monkeypatch.setattr(run, "runs", lambda checked: ([one] for one in checked))
    assert together == answer(tmp_path / "each.db", script)
