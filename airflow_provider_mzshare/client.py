"""mzshare for Python: ``mz = connect()``, then statements, rows, status. Nothing deeper is needed, or promised to stay.

Where the catalog and the warehouse are, and how apps run, is said by the ``MZSHARE_…`` variables, as for the command
line, or by arguments of ``connect``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.core import arguments
from airflow_provider_mzshare.core.arguments import given
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.wiring import Wiring

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_mzshare.connectors.connections import ConnectionStore
    from airflow_provider_mzshare.control.lifecycle.change_stream import Asked
    from airflow_provider_mzshare.control.lifecycle.holding import ReadHold
    from airflow_provider_mzshare.control.lifecycle.live_decision import Goal
    from airflow_provider_mzshare.control.lifecycle.progress import Progress
    from airflow_provider_mzshare.control.lifecycle.pushing import Pushed, Pusher
    from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus
    from airflow_provider_mzshare.control.lifecycle.verified import Verified
    from airflow_provider_mzshare.control.statements.answers import Result

__all__ = ["MzShare", "Status", "connect"]


def connect(
    *,
    home: str | Path | None = None,
    catalog: str | None = None,
    warehouse: str | None = None,
    connections: Mapping[str, Mapping[str, Any]] | None = None,
) -> MzShare:
    """Open nothing yet: the catalog is looked at by the first call that needs it.

    :param home: instead of ``MZSHARE_HOME``; it holds the catalog and the warehouse, unless you give these too.
    :param catalog: instead of ``MZSHARE_CATALOG``: ``sqlite:///FILE`` or ``postgresql+psycopg://USER@HOST/DATABASE``.
    :param warehouse: instead of ``MZSHARE_WAREHOUSE``: a folder or a URI.
    :param connections: to upstreams, by name, as Airflow's JSON has them:
        ``{"broker": {"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:9092"}}}``. Others are looked for
        where Airflow looks.
    """
    said = {"MZSHARE_HOME": home, "MZSHARE_CATALOG": catalog, "MZSHARE_WAREHOUSE": warehouse}
    environ = {**os.environ, **{name: str(value) for name, value in said.items() if value is not None}}
    return MzShare(Wiring(Settings.from_environment(environ), lambda: _connections(connections or {})))


def _connections(given: Mapping[str, Mapping[str, Any]]) -> ConnectionStore:
    from airflow_provider_mzshare.hooks.connections import DefaultConnections

    named = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(dict(definition)) for name, definition in given.items()}
    return DefaultConnections({**os.environ, **named})


@dataclass(frozen=True)
class Status:
    """Sources, and the tables that were asked for."""

    sources: Sequence[SourceStatus]
    tables: Sequence[TableStatus]


class MzShare:
    """One catalog and its tables. A context; else ``close`` it. Errors are ``MzShareError``, with a ``hint``."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    @property
    def settings(self) -> Settings:
        return self._wiring.settings

    def close(self) -> None:
        self._wiring.close()

    def __enter__(self) -> MzShare:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────

    def sql(self, text: str, *, dry_run: bool = False) -> list[Result]:
        """Run statements, as ``mzshare sql`` does; a result for each. No app is started: ``wait`` does that.

        :param dry_run: check and plan everything, and change nothing.
        """
        from airflow_provider_mzshare.control.statements.run import execute_script

        return execute_script(self._wiring.ensure_catalog(), text, self._wiring.connections, dry_run=dry_run)

    # ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(
        self,
        name: str,
        *,
        as_of: int | datetime | None = None,
        tick: int | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        errors: bool = False,
        system_columns: bool = False,
        require_live: bool = False,
    ) -> pa.Table:
        """The rows of a table or a view, or how far a source is.

        The answer is an Arrow table: ``.to_pandas()``, ``polars.from_arrow(…)``, ``duckdb.sql(…)`` on its name and
        ``spark.createDataFrame(…)`` take it as it is.

        :param as_of: a time, or an ``mz_timestamp`` in milliseconds; else as of now.
        :param tick: as of this tick of its source, instead.
        :param errors: the records that could not be decoded, instead of the rows.
        :param system_columns: with tick and place of each row.
        :param require_live: fail unless the table is live; otherwise the rows that are there are returned.
        """
        with self.open(
            name,
            as_of=as_of,
            tick=tick,
            columns=columns,
            limit=limit,
            errors=errors,
            system_columns=system_columns,
            require_live=require_live,
        ) as batches:
            return batches.read_all()

    @contextmanager
    def open(
        self,
        name: str,
        *,
        as_of: int | datetime | None = None,
        tick: int | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        errors: bool = False,
        system_columns: bool = False,
        require_live: bool = False,
    ) -> Iterator[pa.RecordBatchReader]:
        """What ``read`` gives, a batch at a time, for more rows than fit into memory."""
        from airflow_provider_mzshare.control.lifecycle.liveness import ignore, refuse
        from airflow_provider_mzshare.control.lifecycle.read_table import Query, open_table
        from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name

        typed_name(name)
        errors, limit = arguments.flag("errors", errors), given(_count, "limit", limit)
        with_system = arguments.flag("system_columns", system_columns) or errors
        query = Query(given(arguments.names, "columns", columns), errors, with_system, limit, ordered=limit is not None)
        when: dict[str, Any] = {**_when(as_of, tick), "jars": self.settings.jars}
        when["not_live"] = refuse if arguments.flag("require_live", require_live) else ignore
        with open_table(self._wiring.catalog, self.settings.warehouse, name, query, **when) as batches:
            yield batches

    @contextmanager
    def changes(
        self,
        name: str,
        *,
        as_of: int | datetime | None = None,
        up_to: int | datetime | None = None,
        snapshot: bool = True,
        progress: bool = False,
        columns: Sequence[str] | None = None,
        system_columns: bool = False,
    ) -> Iterator[pa.RecordBatchReader]:
        """What has changed in a table, a batch at a time, in the order of ``mz_timestamp``.

        Columns: ``mz_timestamp``, ``mz_diff`` (how often the row comes, or with a minus goes), then the table's.

        :param as_of: with a snapshot, its time: its rows come first, then what happened after it. Without, the first
            time. None: the newest time that can be read; without a snapshot the first that changes can be had of.
        :param up_to: only what happened before it; None: all that is final now.
        :param snapshot: begin with the rows as of a time.
        :param progress: also rows that only say that nothing more comes before ``mz_timestamp``: in the column
            ``mz_progressed`` after it, which is true of them.
        :param system_columns: with tick and place of each row.
        """
        from airflow_provider_mzshare.control.lifecycle.change_stream import open_changes
        from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name

        typed_name(name)
        asked = _asked(as_of, up_to, snapshot, progress, columns, system_columns)
        with open_changes(self._wiring.catalog, self.settings.warehouse, name, asked) as batches:
            yield batches

    @contextmanager
    def follow(
        self,
        name: str,
        *,
        as_of: int | datetime | None = None,
        up_to: int | datetime | None = None,
        snapshot: bool = True,
        progress: bool = False,
        columns: Sequence[str] | None = None,
        system_columns: bool = False,
        poll_seconds: float = 1.0,
        timeout: float | None = None,
    ) -> Iterator[pa.RecordBatchReader]:
        """What ``changes`` gives, and then what comes: the reader waits for it, until the caller stops.

        :param up_to: end there; None: go on.
        :param poll_seconds: how often the catalog is looked at.
        :param timeout: seconds; then it ends with all that is final. None: never.
        """
        from airflow_provider_mzshare.control.lifecycle.change_following import follow_changes
        from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name

        typed_name(name)
        asked = _asked(as_of, up_to, snapshot, progress, columns, system_columns)
        where = self._wiring.catalog, self.settings.warehouse
        poll, limit = arguments.seconds("poll_seconds", poll_seconds), given(arguments.seconds, "timeout", timeout)
        with follow_changes(*where, name, asked, poll_seconds=poll, timeout=limit) as batches:
            yield batches

    def read_cut(
        self, names: Sequence[str], *, as_of: int | datetime | None = None, tick: int | None = None
    ) -> Mapping[str, pa.Table]:
        """Several tables of one source at the same tick: the rows of a record are in all of them or in none."""
        from airflow_provider_mzshare.control.lifecycle.read_table import read_cut

        where = self._wiring.catalog, self.settings.warehouse
        return read_cut(*where, arguments.names("names", names), **_when(as_of, tick))

    def frame(
        self, spark: SparkSession, name: str, *, as_of: int | datetime | None = None, tick: int | None = None
    ) -> DataFrame:
        """What ``read`` gives, as a DataFrame of a session that has Delta, in no order."""
        from airflow_provider_mzshare.control.lifecycle.read_table import read_frame

        where = self._wiring.catalog, self.settings.warehouse
        return read_frame(spark, *where, name, **_when(as_of, tick))

    def path(self, table: str, *, errors: bool = False) -> str:
        """The folder or URI of the table's Delta table, for other readers of Delta."""
        from airflow_provider_mzshare.control.lifecycle.locations import locate
        from airflow_provider_mzshare.control.lifecycle.typed_names import find_table

        found = find_table(self._wiring.catalog, table)
        with self._wiring.catalog.read() as session:
            return locate(session, self.settings.warehouse, found, "errors" if errors else "data").uri

    @contextmanager
    def hold(
        self,
        table: str,
        *,
        at: int | datetime | None = None,
        name: str | None = None,
        limit: float = 3600.0,
        keep: bool = False,
        holder: str | None = None,
    ) -> Iterator[ReadHold]:
        """Keep a table's history while the context is open: it stays readable from ``hold.at`` on.

        A heartbeat runs beside. ``hold.move(at)`` lets go what is before. If the hold was not had all the time,
        ``HoldLost`` is raised, at the latest at the end.

        :param at: a time, or an ``mz_timestamp`` in milliseconds; else where the hold of this name stands, or where the
            table is now.
        :param name: by which a holder that was restarted goes on with its hold; else a new one.
        :param limit: seconds without a heartbeat after which the hold is dropped.
        :param keep: leave the hold at the end of the context, to come back to it by its name within the limit.
        :param holder: who holds, for those who look; else this process.
        """
        from airflow_provider_mzshare.control.lifecycle.holding import hold_table

        how: dict[str, Any] = {
            "at": given(arguments.moment, "at", at),
            "name": given(arguments.text, "name", name),
            "limit": arguments.seconds("limit", limit),
            "keep": arguments.flag("keep", keep),
            "holder": given(arguments.text, "holder", holder),
        }
        with hold_table(self._wiring.catalog, table, **how) as hold:
            yield hold

    # ── pushing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def push(
        self, source: str, records: Any, *, batch: str | None = None, partition: int | None = None, wait: float = 30.0
    ) -> Pushed:
        """Push records into a source that was made ``FROM JOURNAL``. Returns when all are durable and count, once.

        :param records: an iterable of bytes or texts (values), or of dictionaries with ``value`` and maybe ``key``,
            ``headers``, ``timestamp``; or an Arrow table of such columns.
        :param batch: an id of yours: the same records sent again under it are acknowledged, and not taken again.
        :param partition: of the source; None: the first that nobody else pushes into.
        :param wait: for how many seconds to wait for it.
        """
        with self.pusher(source, partition=partition, wait=wait) as pusher:
            return pusher.push(records, batch=batch)

    @contextmanager
    def pusher(self, source: str, *, partition: int | None = None, wait: float = 30.0) -> Iterator[Pusher]:
        """Hold a partition of a source to push into, from any number of threads: ``pusher.push(records, batch=…)``.

        What threads push at the same time is flushed to the disk together. Errors say what counts and what does not.
        """
        from airflow_provider_mzshare.control.lifecycle.pushing import open_pusher

        with open_pusher(self._wiring.catalog, self.settings, source, partition=partition, wait=wait) as pusher:
            yield pusher

    # ── looking and waiting ───────────────────────────────────────────────────────────────────────────────────────────

    def status(self, name: str | None = None, *, lag: bool = False) -> Status:
        """The status of all sources; of one source with its tables; or of one table with its source.

        :param lag: ask upstreams how far behind we are.
        """
        reader = self._wiring.status_reader(ask_upstreams=lag)
        if name is None:
            return Status(reader.sources(), [])
        source, tables = reader.named(name)
        return Status([source], tables)

    def wait(
        self,
        name: str,
        *,
        until: Goal = "live",
        timeout: float | None = 300.0,
        start: bool | None = None,
        report: Callable[[Progress], None] | None = None,
    ) -> Status:
        """Wait until a table, or all tables of a source, are live, or have all that is upstream now.

        Fails as soon as that cannot happen any more. Also starts backfills that nobody has started, if the app of
        their source runs.

        :param timeout: seconds; None: for ever.
        :param start: True starts backfills in any case, False never.
        :param report: called with each look.
        """
        from airflow_provider_mzshare.control.lifecycle.typed_names import find_item

        item = find_item(self._wiring.catalog, name)
        limit = given(arguments.seconds, "timeout", timeout)
        source, tables = self._wiring.waiter(item, until, start=start, report=report).wait(limit)
        return Status([source], tables)

    def verify(
        self, table: str, *, everything: bool = False, report: Callable[[Progress], None] | None = None
    ) -> Verified:
        """Read a table's range upstream once more and compare, record by record. Raises where one differs.

        :param everything: from the table's start on, not only what its last backfill wrote.
        """
        from airflow_provider_mzshare.control.lifecycle.typed_names import find_table
        from airflow_provider_mzshare.control.lifecycle.verification import verify_table

        found = find_table(self._wiring.catalog, table)
        parts = self._wiring.catalog, self._wiring.connections, self.settings.warehouse
        return verify_table(*parts, found, everything=everything, report=report)


def _count(name: str, value: Any) -> int:
    return arguments.whole(name, value, least=0)


def _when(as_of: int | datetime | None, tick: int | None) -> dict[str, Any]:
    return {"as_of_ms": given(arguments.moment, "as_of", as_of), "tick": given(arguments.whole, "tick", tick)}


def _asked(
    as_of: int | datetime | None,
    up_to: int | datetime | None,
    snapshot: bool,
    progress: bool,
    columns: Sequence[str] | None,
    system_columns: bool,
) -> Asked:
    from airflow_provider_mzshare.control.lifecycle.change_stream import Asked

    return Asked(
        given(arguments.moment, "as_of", as_of),
        given(arguments.moment, "up_to", up_to),
        arguments.flag("snapshot", snapshot),
        arguments.flag("progress", progress),
        given(arguments.names, "columns", columns),
        arguments.flag("system_columns", system_columns),
    )
