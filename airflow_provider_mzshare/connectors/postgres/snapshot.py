"""Snapshots of tables of a Postgres, beside a slot that others read: who takes one, and what of it is exact.

It is an ordinary exported snapshot of an ordinary transaction. No slot is made for it: the snapshot that a new slot
exports waits for all writers, and some servers lose committed rows by it. It is not a point of the log either, because
a transaction may be in the log, and streamed, before any snapshot sees it. So the transactions that it has are told by
their ids, and these rules make the rest exact:

- Everything below P, where the tables' ticks begin, is in it: a barrier waits until all transactions that had an id
  when P was known are seen by every new snapshot. The same barrier makes sure that who wrote before the table came into
  the publication, and is never streamed, is in it.
- H is asked for after it, and is where the server inserts: all that it has was inserted before H. From H on every
  transaction applies; between P and H those that it does not have.
- Its keeper stays open until all has been read, and until the log is flushed up to H: else a server that crashes may
  lose what was read.
- Statements that rewrite a table (TRUNCATE, VACUUM FULL) are not hidden from snapshots. They give it another file,
  which whoever reads compares with the one that it had before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import psycopg

from airflow_provider_mzshare.connectors.base import SnapshotRange, SnapshotTaken
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig, connect, explained
from airflow_provider_mzshare.connectors.postgres.lsn import show_lsn
from airflow_provider_mzshare.connectors.postgres.snapshot_parts import Leaf, Part, RangeReader, block_ranges
from airflow_provider_mzshare.connectors.postgres.text_form import TEXT_FORM, as_options
from airflow_provider_mzshare.errors import SnapshotLost, UpstreamChanged

POLL_SECONDS = 0.05
TELL_SECONDS = 5.0
BLOCKS_PER_RANGE = 8192
"""64 MiB of blocks of the usual size."""
TID_RANGES = 14_00_00
"""From this version on a range of blocks is read alone; before, each range would be looked for in the whole table."""

_LEAVES = """
SELECT c.oid::bigint, n.nspname, c.relname, coalesce(pg_relation_filenode(c.oid), 0)::bigint, c.reltuples
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (c.oid = %(oid)s AND c.relkind <> 'p') OR c.oid IN (SELECT relid FROM pg_partition_tree(%(oid)s) WHERE isleaf)
ORDER BY c.oid"""
_BLOCKS = "SELECT coalesce(pg_relation_size(%s::oid), 0) / current_setting('block_size')::bigint"
_COLUMNS = """
SELECT a.attname, f.nspname, p.proname FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_proc p ON p.oid = t.typoutput JOIN pg_namespace f ON f.oid = p.pronamespace
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum"""
_PUBLISHED = """
SELECT t.attnames::text[], t.rowfilter FROM pg_publication_tables t
JOIN pg_namespace n ON n.nspname = t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE t.pubname = %s AND c.oid = %s"""
_WAITED_FOR = """
SELECT pid, coalesce(application_name, ''), state, coalesce(wait_event, ''), extract(epoch FROM now() - xact_start)::int
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1"""


class PostgresSnapshots:
    """:param publication: whose columns and rows are read."""

    def __init__(self, config: PostgresConfig, publication: str, *, blocks: int = BLOCKS_PER_RANGE) -> None:
        self._config, self._publication, self._blocks = config, publication, blocks

    def take(
        self, references: Sequence[str], p: int, *, waits: Callable[[str], None], stop: Callable[[], bool]
    ) -> PostgresKeeper | None:
        """:param references: oids of tables. :param p: known before this was called, when the tables were published."""
        if not self._wait_for_writers(waits, stop):
            return None
        connection = connect(self._config, "snapshot", timeout=0)
        try:
            with explained(self._config):
                taken = self._taken(connection, [int(oid) for oid in references], p)
            self._go_past(taken.h)
            return PostgresKeeper(connection, taken)
        except BaseException:
            connection.close()
            raise

    def range_reader(self, taken: SnapshotTaken) -> RangeReader:
        settings = {**TEXT_FORM, "statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
        values = {"application_name": "mzshare snapshot", "client_encoding": "UTF8", **self._config.values}
        return RangeReader({**values, "options": as_options(settings)})

    # ── the barrier ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _wait_for_writers(self, waits: Callable[[str], None], stop: Callable[[], bool]) -> bool:
        with explained(self._config), connect(self._config, "snapshot barrier") as connection:
            # Not the xmax of a snapshot: who has ended in the log, and not in memory yet, may be beyond it.
            last = _one(connection, "SELECT pg_current_xact_id()::text::bigint")
            tell = time.monotonic() + POLL_SECONDS * 4
            while _one(connection, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint") <= last:
                if stop():
                    return False
                if time.monotonic() >= tell:
                    waits(_waited_for(connection))
                    tell = time.monotonic() + TELL_SECONDS
                time.sleep(POLL_SECONDS)
        return True

    def _go_past(self, h: int) -> None:
        """Write something behind H: the log of a server where nobody writes would not be flushed up to it, because what
        is inserted next begins behind a page's header."""
        with explained(self._config), connect(self._config, "snapshot barrier") as connection:
            _one(connection, "SELECT pg_logical_emit_message(true, 'mzshare', %s)", show_lsn(h))

    # ── the snapshot ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _taken(self, connection: psycopg.Connection[Any], oids: Sequence[int], p: int) -> SnapshotTaken:
        if _one(connection, "SELECT pg_is_in_recovery()"):
            raise UpstreamChanged(
                "upstream_is_standby",
                f"Postgres at {self._config.where} is a standby: its snapshots do not tell what is under way",
                hint=f"let connection {self._config.name!r} name the primary, then ALTER TABLE … RESUME",
            )
        # Files before the snapshot: who reads finds another one if they were rewritten since.
        leaves = {oid: _leaves(connection, oid) for oid in oids}
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        name, seen = _row(connection, "SELECT pg_export_snapshot(), pg_current_snapshot()::text")
        # In a statement of its own, after it. What is flushed or written lies behind that.
        h = int(_one(connection, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))
        ranges = [each for oid in oids for each in self._ranges(connection, oid, leaves[oid], name)]
        return SnapshotTaken(p, h, seen, tuple(ranges))

    def _ranges(
        self, connection: psycopg.Connection[Any], oid: int, leaves: Sequence[Leaf], name: str
    ) -> list[SnapshotRange]:
        """Sizes are asked for after the snapshot: what it sees lies within."""
        columns, rows = self._published(connection, oid)
        found: list[SnapshotRange] = []
        for leaf in leaves:
            blocks = int(_one(connection, _BLOCKS, leaf.oid))
            most = self._blocks if connection.info.server_version >= TID_RANGES else max(1, blocks)
            pieces = block_ranges(blocks, most)
            for first, end in pieces:
                part = Part(oid, name, leaf, columns, rows, first, end)
                found.append(SnapshotRange(str(oid), part.to_text(), max(0, round(leaf.rows / len(pieces)))))
        return found

    def _published(self, connection: psycopg.Connection[Any], oid: int) -> tuple[tuple[tuple[str, str], ...], str]:
        """The columns with the functions that write their values, and the condition on rows; empty where there is none.

        The functions are those by which the stream writes values. A cast to text is not the same for all types.
        """
        rows = connection.execute(_COLUMNS, (oid,)).fetchall()
        columns = [(name, f"{_quoted(schema)}.{_quoted(function)}") for name, schema, function in rows]
        if connection.info.server_version < 15_00_00:
            return tuple(columns), ""
        published = connection.execute(_PUBLISHED, (self._publication, oid)).fetchone()
        if published is None:
            raise UpstreamChanged(
                "not_published",
                f"the table with the oid {oid} is not in publication {self._publication!r} any more",
                hint=f"ALTER PUBLICATION {self._publication} ADD TABLE …, then ALTER TABLE … RESNAPSHOT",
            )
        names, condition = published
        return tuple(each for each in columns if each[0] in names), condition or ""


class PostgresKeeper:
    """The transaction whose snapshot others import. It holds back the server's clean-up as long as it is open."""

    def __init__(self, connection: psycopg.Connection[Any], taken: SnapshotTaken) -> None:
        self._connection, self._taken = connection, taken

    @property
    def taken(self) -> SnapshotTaken:
        return self._taken

    def check(self) -> None:
        self._ask("SELECT 1")

    def is_flushed(self) -> bool:
        """Asked on the keeper's own connection: a server that crashed and came back has ended it."""
        return bool(self._ask("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", show_lsn(self._taken.h)))

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def _ask(self, query: str, *values: object) -> Any:
        try:
            return _one(self._connection, query, *values)
        except psycopg.Error as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise SnapshotLost(f"the transaction that keeps it has ended: {line}") from None


def _leaves(connection: psycopg.Connection[Any], oid: int) -> list[Leaf]:
    rows = connection.execute(_LEAVES, {"oid": oid}).fetchall()
    is_root = _one(connection, "SELECT count(*) FROM pg_class WHERE oid = %s AND relkind = 'p'", oid)
    if not rows and not is_root:
        raise UpstreamChanged(
            "table_dropped",
            f"the table with the oid {oid} is not there upstream any more",
            hint="DROP TABLE …, and create it again from the table that has its name now",
        )
    return [
        Leaf(leaf, schema, name, filenode, float(count), number)
        for number, (leaf, schema, name, filenode, count) in enumerate(rows)
    ]


def _waited_for(connection: psycopg.Connection[Any]) -> str:
    """The oldest transaction, as an administrator would look for it."""
    row = connection.execute(_WAITED_FOR).fetchone()
    if row is None:
        return "waits for a transaction upstream that is prepared, or about to end"
    pid, application, state, event, seconds = row
    why = ", until a standby confirms it (synchronous_standby_names)" if event == "SyncRep" else ""
    named = f" ({application})" if application else ""
    return f"waits for the transaction of process {pid}{named} upstream, {state} since {seconds} s{why}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _row(connection: psycopg.Connection[Any], query: str, *values: object) -> tuple[Any, ...]:
    found = connection.execute(query.encode(), values or None).fetchone()
    assert found is not None  # only asked where there always is one
    return tuple(found)


def _one(connection: psycopg.Connection[Any], query: str, *values: object) -> Any:
    return _row(connection, query, *values)[0]
