"""Relations about what happens: statistics, statuses, frontiers, progress, ticks, jobs, cutovers."""

from __future__ import annotations

from airflow_provider_mzshare.control.relations.counting import statistics
from airflow_provider_mzshare.control.relations.dialects import Dialect
from airflow_provider_mzshare.control.relations.exports import exported
from airflow_provider_mzshare.control.relations.relation import Column, Relation

_WATCHED = "i.dropped_at IS NULL AND i.kind IN ('source', 'subsource', 'table')"
"""A condition on ``items AS i``: items that have a status."""


def _last_tick(source: str) -> str:
    """A join condition on ``ticks AS k``: the newest committed tick of a source."""
    newest = f"SELECT MAX(m.number) FROM ticks AS m WHERE m.source_id = {source} AND m.committed"
    return f"k.source_id = {source} AND k.number = ({newest})"


def _statuses(d: Dialect) -> str:
    kind = f"CASE i.kind WHEN 'source' THEN REPLACE({d.field('o.spec', 'kind')}, '_', '-') ELSE i.kind END"
    last = "SELECT MAX(m.number) FROM status_history AS m WHERE m.object_id = i.id"
    return (
        f"SELECT i.id, i.name, {kind}, {d.time('COALESCE(h.occurred_at, i.created_at)')}, "
        "COALESCE(h.status, 'starting'), h.error, h.details FROM items AS i LEFT JOIN sources AS o ON o.id = i.id "
        f"LEFT JOIN status_history AS h ON h.object_id = i.id AND h.number = ({last}) WHERE {_WATCHED}"
    )


def _history(d: Dialect) -> str:
    """Rows in the order of writing: two changes may have the same millisecond."""
    columns = f"{d.time('h.occurred_at')}, h.object_id, h.status, h.error, h.details"
    return f"SELECT {columns} FROM status_history AS h ORDER BY h.number"


def _frontiers(d: Dialect) -> str:
    tables = exported("NULLIF(t.since, 0) AS read_frontier, NULLIF(t.upper, 0) AS write_frontier")
    of_source = (
        "SELECT o.id, k.mz_timestamp, k.mz_timestamp + 1 FROM sources AS o "
        f"LEFT JOIN ticks AS k ON {_last_tick('o.id')} "
        "WHERE o.status <> 'dropped' AND NOT EXISTS (SELECT 1 FROM outputs AS p WHERE p.source_id = o.id)"
    )
    of_progress = (
        "SELECT i.id, k.mz_timestamp, k.mz_timestamp + 1 FROM items AS i JOIN progress_names AS n ON n.id = i.id "
        f"LEFT JOIN ticks AS k ON {_last_tick('n.source_id')} WHERE i.dropped_at IS NULL"
    )
    return f"{tables} UNION ALL {of_source} UNION ALL {of_progress}"


def _progress(d: Dialect) -> str:
    # CROSS JOIN fixes the order of tables in SQLite: in another order it would read the whole log of ticks.
    return (
        f"SELECT o.id, {d.lane('e.key')}, {d.number('e.value')}, k.number, k.mz_timestamp FROM sources AS o "
        f"CROSS JOIN ticks AS k CROSS JOIN {d.entries('k.upper')} "
        f"WHERE o.status <> 'dropped' AND {_last_tick('o.id')}"
    )


def _ticks(d: Dialect) -> str:
    return (
        f"SELECT source_id, number, {d.document('lower')}, {d.document('upper')}, mz_timestamp, committed, "
        f"{d.time('minted_at')}, {d.time('committed_at')}, job_id, attempts, {d.document('stats')} FROM ticks"
    )


def _jobs(d: Dialect) -> str:
    return (
        "SELECT id, kind, source_id, backfill_id, state, launcher, master, host, pid, "
        f"{d.time('created_at')}, {d.time('started_at')}, {d.time('ended_at')}, stop_requested, error, exit_code, "
        "ui_url FROM jobs"
    )


def _cutovers(d: Dialect) -> str:
    """The output of an old-style source is shown as that source."""
    return (
        "SELECT c.number, COALESCE(p.source_id, c.table_id), c.source_id, c.generation, c.backfill_id, c.tick, "
        f"c.mz_timestamp, c.from_tick, c.history_tick, {d.document('c.start')}, {d.document('c.history_upper')}, "
        f"{d.document('c.cutover')}, c.rows, c.errors, c.data_hash, c.errors_hash, {d.names('c.backfill_jobs')}, "
        f"c.ingestion_job, {d.time('c.created_at')} FROM certificates AS c LEFT JOIN outputs AS p "
        "ON p.table_id = c.table_id"
    )


_STATUS = Column("status", "`starting`, `running`, `idle`, `paused`, `stalled`, `failed` or `dropped`")
_ERROR = Column("error", "what is wrong; NULL when nothing is")
_DETAILS = Column("details", "JSON: `hints` lists the next steps; NULL when there is none")

ACTIVITY = (
    Relation(
        "mz_internal",
        "mz_source_statistics",
        "How much each source has read, and how much each table has got. Counted when ticks are committed, so that a "
        "restart neither loses nor doubles anything.",
        (
            Column("id", "the source, subsource or table"),
            Column("messages_received", "source: records read; table: records it has got", "bigint"),
            Column("bytes_received", "source: bytes of keys and values; table: NULL, one read serves all", "bigint"),
            Column("updates_staged", "rows, their changes and errors that were written, in place or not yet", "bigint"),
            Column("updates_committed", "the same of generations that are or were in place", "bigint"),
            Column("snapshot_records_known", "offsets of the history that its backfill has to read", "bigint"),
            Column("snapshot_records_staged", "how many of these offsets it has read", "bigint"),
            Column("snapshot_committed", "whether all the history that belongs to it is there", "boolean"),
            Column("offset_known", "the last known end of the upstream, summed over partitions", "bigint"),
            Column("offset_committed", "the position of the source or table, summed over partitions", "bigint"),
        ),
        statistics,
    ),
    Relation(
        "mz_internal",
        "mz_source_statuses",
        "The status of each source, subsource and table, as the catalog knows it. The catalog learns that a process "
        "died when `mzshare reconcile` looks.",
        (
            Column("id", "the object"),
            Column("name", "its name"),
            Column("type", "`kafka`, `load-generator`, `subsource` or `table`"),
            Column("last_status_change_at", "since when it has this status"),
            _STATUS,
            _ERROR,
            _DETAILS,
        ),
        _statuses,
    ),
    Relation(
        "mz_internal",
        "mz_source_status_history",
        "Every change of a status, also of dropped objects. Changes are removed after `status_history_retention`.",
        (
            Column("occurred_at", "when the status changed"),
            Column("source_id", "the source, subsource or table"),
            _STATUS,
            _ERROR,
            _DETAILS,
        ),
        _history,
    ),
    Relation(
        "mz_internal",
        "mz_frontiers",
        "From when to when each object can be read.",
        (
            Column("object_id", "the object"),
            Column("read_frontier", "the oldest `mz_timestamp` to read it at; NULL before its first tick", "bigint"),
            Column("write_frontier", "the next `mz_timestamp` to be written; everything before it is final", "bigint"),
        ),
        _frontiers,
    ),
    Relation(
        "mz_internal",
        "mz_progress",
        "The position of each source. `SELECT … FROM a_source` reads the rows of that source, without `source_id`.",
        (
            Column("source_id", "the source"),
            Column("partition", "the upstream's partition; a partition that is missing here is at 0", "integer"),
            Column("offset", "the next offset to read", "bigint"),
            Column("tick", "the last committed tick; before the first one there are no rows", "bigint"),
            Column("mz_timestamp", "the time of that tick", "bigint"),
        ),
        _progress,
    ),
    Relation(
        "mz_internal",
        "mz_ticks",
        "The tick log of every source.",
        (
            Column("source_id", "the source"),
            Column("number", "the tick's number, from 1", "bigint"),
            Column("lower", "the position where it begins", "jsonb"),
            Column("upper", "the position where it ends; this position is not part of it", "jsonb"),
            Column("mz_timestamp", "its time, in milliseconds", "bigint"),
            Column("committed", "false while it is executed", "boolean"),
            Column("minted_at", "when its range was fixed"),
            Column("committed_at", "when it was committed"),
            Column("job_id", "the job that minted it"),
            Column("attempts", "how often its execution was begun", "bigint"),
            Column("stats", "what its execution cost", "jsonb"),
        ),
        _ticks,
    ),
    Relation(
        "mz_internal",
        "mz_jobs",
        "Every run of an app.",
        (
            Column("id", "the job"),
            Column("kind", "`ingest` or `backfill`"),
            Column("source_id", "the source"),
            Column("backfill_id", "the backfill, for a job of kind `backfill`"),
            Column("state", "`launching`, `starting`, `running`, `stopping`; ended: `stopped`, `finished`, `fenced`, "
                            "`stalled`, `failed`, `lost`"),
            Column("launcher", "how it was started"),
            Column("master", "Spark's master"),
            Column("host", "where it runs"),
            Column("pid", "the process id of its driver", "bigint"),
            Column("created_at", "when it was launched"),
            Column("started_at", "when its process started"),
            Column("ended_at", "when it ended"),
            Column("stop_requested", "whether it was asked to stop", "boolean"),
            Column("error", "why it ended, or what holds it up"),
            Column("exit_code", "the exit code of its process", "bigint"),
            Column("ui_url", "the address of Spark's own pages"),
        ),
        _jobs,
    ),
    Relation(
        "mz_internal",
        "mz_cutovers",
        "The certificate of every cutover.",
        (
            Column("id", "the certificate", "bigint"),
            Column("table_id", "the table"),
            Column("source_id", "its source"),
            Column("generation", "the table's generation", "bigint"),
            Column("backfill_id", "the backfill that brought it up"),
            Column("tick", "the first tick that the ingestion app wrote", "bigint"),
            Column("mz_timestamp", "the time of that tick", "bigint"),
            Column("from_tick", "the first tick that the backfill wrote", "bigint"),
            Column("history_tick", "the last tick that was history; later ticks came while the backfill ran", "bigint"),
            Column("start", "the position where the backfill began", "jsonb"),
            Column("history_upper", "the position where the history ended", "jsonb"),
            Column("cutover", "the position where the ingestion app took over", "jsonb"),
            Column("rows", "rows that the backfill wrote", "bigint"),
            Column("errors", "decode errors that the backfill wrote", "bigint"),
            Column("data_hash", "the sum of the rows' hashes"),
            Column("errors_hash", "the sum of the errors' hashes"),
            Column("backfill_jobs", "the jobs that worked on it", "text[]"),
            Column("ingestion_job", "the job that took over"),
            Column("created_at", "when the certificate was made"),
        ),
        _cutovers,
    ),
)  # fmt: skip
