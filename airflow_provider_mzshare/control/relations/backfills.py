"""The relations of backfills that are under way, and of the snapshots that they have taken."""

from __future__ import annotations

from airflow_provider_mzshare.control.relations.dialects import Dialect
from airflow_provider_mzshare.control.relations.relation import Column, Relation

_ARRIVING = "status IN ('backfilling', 'converging')"
_ACTIVE = "state IN ('launching', 'starting', 'running', 'stopping')"


def _backfills(d: Dialect) -> str:
    """The queue of ``catalog.queue``: backfills that were refused an app, of sources that should run."""
    brought = (
        f"SELECT backfill_id, COUNT(*) AS tables FROM (SELECT backfill_id FROM tables WHERE {_ARRIVING} UNION ALL "
        f"SELECT backfill_id FROM replacements WHERE {_ARRIVING}) AS n GROUP BY backfill_id"
    )
    job = f"SELECT MAX(j.number) FROM jobs AS j WHERE j.backfill_id = b.id AND j.{_ACTIVE}"
    waits = "j.id IS NULL AND b.queued_at IS NOT NULL AND s.status <> 'dropped' AND s.desired = 'running'"
    found = (
        "SELECT b.id, b.source_id, a.tables, b.created_at, b.queued_at, j.id AS job_id, "
        f"{d.truth(waits)} AS waits FROM backfills AS b JOIN ({brought}) AS a ON a.backfill_id = b.id "
        f"JOIN sources AS s ON s.id = b.source_id LEFT JOIN jobs AS j ON j.number = ({job})"
    )
    state = "CASE WHEN q.job_id IS NOT NULL THEN 'running' WHEN q.waits THEN 'queued' ELSE 'waiting' END"
    place = "ROW_NUMBER() OVER (PARTITION BY q.waits ORDER BY q.queued_at, q.id)"
    length = "COUNT(*) OVER (PARTITION BY q.waits)"
    return (
        f"SELECT q.id, q.source_id, q.tables, {state}, CASE WHEN q.waits THEN {place} END, "
        f"CASE WHEN q.waits THEN {length} END, q.job_id, {d.time('q.created_at')} FROM ({found}) AS q"
    )


def _snapshots(d: Dialect) -> str:
    return (
        "SELECT s.id, s.table_id, s.generation, s.backfill_id, s.rows_expected, s.rows_read, "
        f"{d.time('s.taken_at')}, {d.time('s.landed_at')} FROM snapshots AS s "
        "JOIN tables AS t ON t.id = s.table_id WHERE t.status <> 'dropped'"
    )


BACKFILLS = (
    Relation(
        "mz_internal",
        "mz_backfills",
        "Backfills that have tables to bring up. At most `MZSHARE_MAX_BACKFILLS` of them have an app.",
        (
            Column("id", "the backfill"),
            Column("source_id", "its source"),
            Column("tables", "how many tables it brings up", "bigint"),
            Column(
                "state",
                "`running`: it has an app; `queued`: it gets one when fewer run; `waiting`: nobody has started it, or "
                "nobody has started it again",
            ),
            Column("queue_place", "its place in the queue, if it is queued; 1 is next", "bigint"),
            Column("queue_length", "how many backfills are queued", "bigint"),
            Column("job_id", "its app's job"),
            Column("created_at", "when it was asked for"),
        ),
        _backfills,
    ),
    Relation(
        "mz_internal",
        "mz_snapshots",
        "Snapshots of upstreams, for tables that begin with one. Of a generation, only one lands: others were lost.",
        (
            Column("id", "the snapshot"),
            Column("object_id", "the table"),
            Column("generation", "its generation that begins with it", "bigint"),
            Column("backfill_id", "the backfill that has taken it"),
            Column("rows_expected", "how many rows the table had upstream, roughly", "bigint"),
            Column("rows_read", "how many of them were read when somebody last looked", "bigint"),
            Column("taken_at", "when it was taken"),
            Column("landed_at", "when its rows were found in the table: only those of one snapshot are"),
        ),
        _snapshots,
    ),
)
