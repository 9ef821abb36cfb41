"""Statements and queries on a catalog whose sources are load generators; ticks are committed without an app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.database.models import JobState
from airflow_provider_mzshare.control.catalog.jobs import ACTIVE
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.handlers.show import create_sql
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Outcome, Tick

PARTITIONS = {"organizations": 0, "users": 1, "accounts": 2, "auctions": 3, "bids": 4}


class Described:
    """A catalog, what is run on it, and what its relations say."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self._connections = catalog, EnvConnections({})

    def run(self, *statements: str) -> list[str]:
        return [result.message for text in statements for result in self.script(text)]

    def script(self, text: str) -> list[Result]:
        return list(execute_script(self.catalog, text, self._connections))

    def query(self, text: str) -> list[dict[str, Any]]:
        (result,) = self.script(text)
        assert result.rows is not None
        return result.rows

    def one(self, text: str) -> dict[str, Any]:
        (row,) = self.query(text)
        return row

    def id(self, name: str, schema: str = "public") -> ItemId:
        with self.catalog.read() as session:
            found = items.find(session, (schema, name))
            assert found is not None
            return found.id

    def statements(self) -> dict[str, str]:
        """As the relations have them, by id."""
        relations = ("mz_sources", "mz_tables", "mz_views")
        rows = [row for name in relations for row in self.query(f"SELECT id, create_sql FROM {name}")]
        return {row["id"]: row["create_sql"] for row in rows}

    def printed(self) -> dict[str, str]:
        """As SHOW CREATE prints them now, by id."""
        with self.catalog.read() as session:
            return {
                row: f"{create_sql(session, items.get_item(session, ItemId(row)))};"
                for row in sorted(self.statements())
            }

    def status(self, name: str) -> tuple[str, str | None]:
        row = self.one(f"SELECT status, error FROM mz_source_statuses WHERE name = '{name}'")
        return row["status"], row["error"]

    def history(self, item_id: str) -> list[str]:
        return [row["status"] for row in self.query(f"SELECT status FROM mz_source_status_history "
                                                    f"WHERE source_id = '{item_id}'")]  # fmt: skip


class Running:
    """A source with a job that is said to run, and ticks that are minted and committed by hand."""

    def __init__(self, described: Described, source: str) -> None:
        self.catalog, self.source_id = described.catalog, described.id(source)
        self.store = CatalogTickStore(self.catalog, self.source_id)
        self.job = self._job()
        self.holder: Holder = self.store.claim(self.job, stood_still=self.store.lease())

    def _job(self) -> JobId:
        with self.catalog.write() as session:
            return job_rows.create_job(
                session, kind="ingest", source_id=self.source_id, launcher="process", folder="/x"
            )

    def started(self) -> None:
        with self.catalog.write() as session:
            job_rows.note_start(session, self.job, pid=1, pid_started=1.0, host="here")

    def becomes(self, state: JobState, error: str | None = None) -> None:
        with self.catalog.write() as session:
            job_rows.set_state(session, self.job, state, expect=ACTIVE, error=error)

    def mint(self, upper: Mapping[int, int]) -> Tick:
        state = self.store.load()
        further = state.upper.join(Position(upper))
        return self.store.mint(self.holder, lower=state.upper, upper=further, incarnation=state.incarnation)

    def commit(
        self, tick: Tick, outcomes: Mapping[ItemId, Outcome] | None = None, stats: Mapping[str, float] | None = None
    ) -> None:
        every = {member.table_id: Done() for member in self.store.members()} | dict(outcomes or {})
        self.store.commit(self.holder, tick.number, every, stats or {})

    def tick(self, upper: Mapping[int, int], **more: Any) -> Tick:
        tick = self.mint(upper)
        self.commit(tick, **more)
        return tick

    def empty(self) -> Tick:
        state = self.store.load()
        return self.store.mint_empty(self.holder, at=state.upper, incarnation=state.incarnation)
