"""A thousand triggers in one event loop, on a real Postgres that writes down what it is asked."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tests.support.airflow  # noqa: F401
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from airflow_provider_mzshare.embedded.process import LOOPBACK
from airflow_provider_mzshare.triggers import poller
from airflow_provider_mzshare.triggers.offsets import OffsetsConvergedTrigger
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.looks import until
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until

TRIGGERS = 1_000
TABLES = 50
INTERVAL = 0.5
ROLE = "the_triggerer"


class Log:
    """What one role has asked the server, from now on."""

    def __init__(self, file: Path) -> None:
        self._file, self._from = file, file.stat().st_size

    def statements(self) -> list[str]:
        with self._file.open() as file:
            file.seek(self._from)
            text = file.read()
        return re.findall(r"LOG:  (?:statement|execute [^:]*): (.*)", text)

    def counted(self) -> dict[str, int]:
        """By what they do: a look at the tables, a transaction's begin or end, a ping, or anything else."""
        counts = dict.fromkeys(("look", "transaction", "ping", "other"), 0)
        for statement in self.statements():
            counts[_kind(statement)] += 1
        return counts


def _kind(statement: str) -> str:
    if statement.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
        return "transaction"
    if statement == ";":
        return "ping"
    return "look" if statement.startswith("SELECT items.id") else "other"


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """Return a database in which whatever the triggers' own role asks is written to the server's log."""
    name = postgres.create_database()
    with postgres.connect() as connection:
        connection.execute(f"CREATE ROLE {ROLE} SUPERUSER LOGIN".encode())
        connection.execute(f"ALTER ROLE {ROLE} SET log_statement = 'all'".encode())
    yield name
    postgres.drop_database(name)
    with postgres.connect() as connection:
        connection.execute(f"DROP ROLE {ROLE}".encode())


@pytest.fixture
def catalog(postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setenv("AIRFLOW_CONN_MZ", f"mzshare://{ROLE}@{LOOPBACK}:{postgres.port}/{database}")
    with Catalog(postgres.url(database)) as created:
        created.upgrade()
        yield created


def connections(postgres: Postgres) -> int:
    with postgres.connect() as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = %s", [ROLE]).fetchone()
    assert found is not None
    return int(found[0])


async def fired(table: str, max_lag: int, interval: float = INTERVAL) -> dict[str, Any]:
    trigger = OffsetsConvergedTrigger(table, max_lag, "mz", interval)
    [event] = [event async for event in trigger.run()]
    payload: dict[str, Any] = event.payload
    return payload


def waiting() -> int:
    return sum(len(one._waiting) for one in poller._pollers.values())


def test_a_thousand_triggers_ask_once_an_interval_and_all_fire(postgres: Postgres, catalog: Catalog) -> None:
    sources = []
    for source in ("one", "two"):
        log, _ = add_late_tables(catalog, *(f"{source}_{n}" for n in range(TABLES // 2)), source=source)
        sources.append((log, Backfilling(catalog, log.source_id, job=f"backfill-{source}")))
    names = [f"{source}_{n}" for source in ("one", "two") for n in range(TABLES // 2)]

    async def scenario() -> list[dict[str, Any]]:
        opening = Log(postgres.folder / "postgres.log")
        # No two of them are equal questions.
        tasks = [asyncio.create_task(fired(names[n % TABLES], 1 + n // TABLES)) for n in range(TRIGGERS)]
        await until(lambda: waiting() == TRIGGERS, 60, "all triggers wait")
        await until(lambda: opening.counted()["look"] >= 2, 60, "the connection is open, the catalog's version known")
        asked, began = Log(postgres.folder / "postgres.log"), time.monotonic()
        await until(lambda: asked.counted()["look"] >= 8, 60, "eight looks")
        counts, seconds = asked.counted(), time.monotonic() - began
        assert counts["look"] <= seconds / INTERVAL + 2, counts
        assert counts["other"] == 0, asked.statements()
        assert counts["transaction"] <= 2 * (counts["look"] + 1)
        assert len(poller._pollers) == connections(postgres) == 1
        for _, backfill in sources:
            await asyncio.to_thread(backfill.follow)
        await until(lambda: _all(catalog, names, "converging"), 60, "all are armed")
        for log, _ in sources:
            await asyncio.to_thread(log.tick)
        told = await asyncio.gather(*tasks)
        await until(lambda: not poller._pollers and connections(postgres) == 0, what="nothing is left")
        return list(told)

    told = asyncio.run(scenario())
    assert [one["outcome"] for one in told] == ["converged"] * TRIGGERS
    assert [one["result"]["table"] for one in told] == [names[n % TABLES] for n in range(TRIGGERS)]
    assert {one["result"]["tick"] for one in told} == {4}


def _all(catalog: Catalog, names: list[str], status: str) -> bool:
    with catalog.read() as session:
        found = convergences(session, [("public", name) for name in names])
    return {one.status for one in found.values()} == {status}


def test_an_outage_of_the_catalog_is_waited_out(
    postgres: Postgres, catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    log, _ = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)

    def failures() -> int:
        return max((one._failures for one in poller._pollers.values()), default=0)

    async def scenario() -> list[dict[str, Any]]:
        tasks = [asyncio.create_task(fired("late", 1, 0.2)) for _ in range(10)]
        await until(lambda: connections(postgres) == 1)
        await asyncio.to_thread(postgres.stop)
        try:
            await until(lambda: failures() >= 2, 60, "the poller has noticed")
            assert not any(task.done() for task in tasks)
        finally:
            await asyncio.to_thread(postgres.start)
        await until(lambda: failures() == 0, 60, "the poller is back")
        await asyncio.to_thread(backfill.follow)
        await until(lambda: _all(catalog, ["late"], "converging"), 60, "it is armed")
        await asyncio.to_thread(log.tick)
        return list(await asyncio.gather(*tasks))

    told = asyncio.run(scenario())
    assert [one["outcome"] for one in told] == ["converged"] * 10
    wait_until(lambda: connections(postgres) == 0, 120, "connections are closed")
    assert [record for record in caplog.records if "10 triggers wait on" in record.getMessage()]
