"""The one hook from Airflow to control: every operator is one call of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mzshare.control.catalog.jobs import get_job
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table
from airflow_provider_mzshare.control.catalog.log.backfills import last_backfill
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.convergence import Convergence, convergences
from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables, ignore
from airflow_provider_mzshare.control.lifecycle.read_table import EVERYTHING, Query, count_rows, open_table, read_table
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus
from airflow_provider_mzshare.control.lifecycle.typed_names import find_source, find_table, typed_name
from airflow_provider_mzshare.control.sql import script as sql
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.run import execute_script, run_transactions
from airflow_provider_mzshare.control.supervision.apps_wait import (
    Backfilling,
    Ingesting,
    await_backfills,
    await_ingestion,
    backfills_of,
)
from airflow_provider_mzshare.control.supervision.reconciler import Outcome
from airflow_provider_mzshare.control.supervision.retiring import retire_backfills
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.errors import UnknownItem
from airflow_provider_mzshare.hooks.base import GRACE_SECONDS, START_SECONDS, CatalogHook
from airflow_provider_mzshare.hooks.definitions import source_statement, table_statement
from airflow_provider_mzshare.hooks.failures import raise_if_failed

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.lifecycle.pushing import Pushed
    from airflow_provider_mzshare.control.lifecycle.verified import Verified
    from airflow_provider_mzshare.control.supervision.maintenance import Maintained
    from airflow_provider_mzshare.control.upgrade.choosing import Wanted
    from airflow_provider_mzshare.control.upgrade.executor import Run
    from airflow_provider_mzshare.control.upgrade.report import Report

POLL_SECONDS = 0.5


class MzShareHook(CatalogHook):
    """Sources, tables and their apps. Every call can be repeated without harm."""

    # ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def run_sql(self, text: str, *, dry_run: bool = False) -> list[Result]:
        return execute_script(self.ensure_catalog(), text, self.connections, dry_run=dry_run)

    def run_statement(self, statement: sql.Statement) -> Result:
        return self.run_together([statement])[0]

    def run_together(self, statements: Sequence[sql.Statement]) -> list[Result]:
        """In one transaction: all or none."""
        return list(run_transactions(self.ensure_catalog(), [statements], self.connections))

    def create_source(self, name: str, **definition: Any) -> Result:
        """The same definition again is no change; another one is a SpecConflict. See ``source_statement``."""
        return self.run_statement(source_statement(name, **definition))

    def create_tables(self, source: str, tables: Sequence[Mapping[str, Any]]) -> list[Result]:
        """All or none, and with one backfill for the tables that need one. See ``table_statement``."""
        return self.run_together([table_statement(source, table) for table in tables])

    def drop_table(self, name: str) -> Result:
        return self.run_statement(sql.DropItem("table", typed_name(name), if_exists=True))

    def drop_source(self, name: str, *, cascade: bool = False) -> Result:
        """Drop the source and stop its apps."""
        result = self.run_statement(sql.DropItem("source", typed_name(name), if_exists=True, cascade=cascade))
        if result.id is not None:
            raise_if_failed(self.reconciler().run(only=ItemId(result.id)))
        return result

    def resume_table(self, name: str) -> str:
        """Returns the status afterwards. A table that is being brought up already, or is live, is not changed."""
        table = self.table(name)
        if table.status == "stalled" or self._replacement(table) == "stalled":
            self.run_statement(sql.AlterTable(typed_name(name), "resume"))
        return self.table(name).status

    def resnapshot_table(self, name: str, *, force: bool = False) -> BackfillId | None:
        """Returns the backfill that fills the new generation. If one is being filled already, it goes on.

        :param force: fill it with what is left, where the upstream has removed history.
        """
        table = self.table(name)
        if self._replacement(table) not in ("backfilling", "converging"):
            self.run_statement(sql.AlterTable(typed_name(name), "resnapshot", force))
        with self.catalog.read() as session:
            return last_backfill(session, table.id)

    def _replacement(self, table: items.TableItem) -> str | None:
        return self.convergence(table.display).replacement

    # ── what runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def reconcile(self) -> list[Outcome]:
        """Start apps that should run, stop those that should not, ask for cutovers that are possible, and tidy up."""
        self.ensure_catalog()
        return self.reconciler().run_patiently()

    def start(self, source: str, *, timeout: float = START_SECONDS, poll: float = POLL_SECONDS) -> Ingesting:
        """Returns once the source's app has committed a tick. The app goes on by itself."""
        source_id = self._desire(source, "running")
        raise_if_failed(self.reconciler().run(only=source_id, at_once=True))
        return await_ingestion(self.catalog, source_id, timeout=timeout, poll=poll)

    def stop(self, source: str, *, grace: float = GRACE_SECONDS) -> list[Outcome]:
        """:param grace: how long the current tick may take; after this the app is killed."""
        source_id = self._desire(source, "stopped")
        return raise_if_failed(self.reconciler(stop_seconds=grace).run(only=source_id, at_once=True))

    def _desire(self, source: str, desired: items.Desired) -> ItemId:
        found = find_source(self.catalog, source)
        with self.catalog.write() as session:
            items.set_desired(session, found.id, desired)
        return found.id

    def start_backfill(
        self, tables: Sequence[str], *, timeout: float = START_SECONDS, poll: float = POLL_SECONDS
    ) -> Backfilling:
        """Returns once each table that has to be brought up has an app for its backfill, or is queued for one.

        Stalled tables are resumed first.
        """
        self._resume_stalled(tables)
        ids = [self.table(name).id for name in tables]
        with self.catalog.read() as session:
            needed = {backfill.source_id for backfill in backfills_of(session, ids)}
        for source_id in sorted(needed):
            raise_if_failed(self.reconciler().run(only=source_id, at_once=True))
        return await_backfills(self.catalog, ids, timeout=timeout, poll=poll)

    def _resume_stalled(self, tables: Sequence[str]) -> None:
        """Resume stalled tables, and stalled new generations, in one transaction, so that they share a backfill."""
        found = {one.table: one for one in map(self.convergence, tables)}
        stalled = {table: one.reason for table, one in found.items() if one.is_stalled}
        if not stalled:
            return
        self.run_together([sql.AlterTable(typed_name(table), "resume") for table in stalled])
        for table, reason in stalled.items():
            self.log.info("table %s is resumed; it was stalled: %s", table, reason)

    def retire_backfill(self, tables: Sequence[str]) -> list[Outcome]:
        """End the backfills of these tables for good. Tables that are not live yet stall, and can be resumed."""
        ids: list[ItemId] = []
        for name in tables:
            with suppress(UnknownItem):  # dropped meanwhile: the reconciler removes what it left
                ids.append(self.table(name).id)
        return raise_if_failed(retire_backfills(self.catalog, self.reconciler(), ids))

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def table(self, name: str) -> items.TableItem:
        return find_table(self.catalog, name)

    def live_tables(self, source: str) -> list[str]:
        """The full names of the source's live tables."""
        found = find_source(self.catalog, source)
        with self.catalog.read() as session:
            tables = items.list_tables(session, found.id)
        return [str(sql.QualifiedName(*table.name)) for table in tables if table.status == "live"]

    def status(self, name: str | None = None) -> tuple[list[SourceStatus], list[TableStatus]]:
        """The status of all sources; of one source with its tables; or of one table with its source."""
        reader = self.status_reader()
        if name is None:
            return reader.sources(), []
        source, tables = reader.named(name)
        return [source], tables

    def spark_ui(self, job_id: str) -> str | None:
        """The address of the job's Spark UI, if it is switched on."""
        with self.catalog.read() as session:
            return get_job(session, JobId(job_id)).ui_url

    def convergence(self, table: str) -> Convergence:
        """How far a table is from being live."""
        table_id = self.table(table).id
        with self.catalog.read() as session:
            return convergences(session, [table_id])[table_id]

    def arm(self, table: str, *, max_lag: int = 1) -> bool:
        """Ask for the cutover of a table that is close enough. False if it is not, or if it was asked for already."""
        table_id = self.table(table).id
        with self.catalog.write() as session:
            return arm_table(session, table_id, max_lag=max_lag)

    def verify(self, table: str) -> Verified:
        """Read the table's range upstream once more and compare, row by row."""
        from airflow_provider_mzshare.control.lifecycle.verification import verify_table

        return verify_table(self.catalog, self.connections, self.settings.warehouse, self.table(table))

    def maintain(self, source: str | None = None) -> list[Maintained]:
        """Move ``since``, remove older files, and ask apps to compact; for the tables of one source, or for all."""
        from airflow_provider_mzshare.control.supervision.maintenance import maintain

        only = None if source is None else find_source(self.catalog, source).id
        return maintain(self.catalog, self.settings.warehouse, only=only)

    def migrate(self, wanted: Wanted, how: Run) -> Report:
        """Migrate old-style sources to tables, roll that back or finalize it. What is done is not done twice."""
        from airflow_provider_mzshare.control.upgrade.executor import run

        return run(self.catalog, wanted, how)

    def push(
        self,
        source: str,
        messages: Iterable[pa.RecordBatch],
        *,
        batch: str | None = None,
        partition: int | None = None,
    ) -> Pushed:
        """Push messages into a source that was made ``FROM JOURNAL``. Sent again under the same id of a batch, they are
        not taken again.
        """
        from airflow_provider_mzshare.control.lifecycle.pushing import open_pusher

        with open_pusher(self.catalog, self.settings, source, partition=partition) as pusher:
            return pusher.push_messages(messages, batch=batch)

    def read(
        self,
        table: str,
        query: Query = EVERYTHING,
        *,
        as_of_ms: int | None = None,
        tick: int | None = None,
        not_live: NotLiveTables = ignore,
    ) -> pa.Table:
        """The rows of a table, a view or a source's progress."""
        typed_name(table)
        asked: dict[str, Any] = {"as_of_ms": as_of_ms, "tick": tick, "not_live": not_live, "jars": self.settings.jars}
        return read_table(self.catalog, self.settings.warehouse, table, query, **asked)

    def open(
        self,
        table: str,
        query: Query = EVERYTHING,
        *,
        as_of_ms: int | None = None,
        tick: int | None = None,
        not_live: NotLiveTables = ignore,
    ) -> AbstractContextManager[pa.RecordBatchReader]:
        """What ``read`` gives, a batch at a time."""
        typed_name(table)
        asked: dict[str, Any] = {"as_of_ms": as_of_ms, "tick": tick, "not_live": not_live, "jars": self.settings.jars}
        return open_table(self.catalog, self.settings.warehouse, table, query, **asked)

    def count(
        self,
        table: str,
        *,
        errors: bool = False,
        as_of_ms: int | None = None,
        tick: int | None = None,
        not_live: NotLiveTables = ignore,
    ) -> int:
        """How many rows ``read`` would give."""
        typed_name(table)
        asked: dict[str, Any] = {"as_of_ms": as_of_ms, "tick": tick, "not_live": not_live, "jars": self.settings.jars}
        return count_rows(self.catalog, self.settings.warehouse, table, errors=errors, **asked)
