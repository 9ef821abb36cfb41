"""The query behind mz_source_statistics: counts recorded at commits, and how far positions are."""

from __future__ import annotations

from airflow_provider_mzshare.control.relations.dialects import Dialect

_EARLIER = (
    "SELECT 1 FROM backfill_tables AS y JOIN backfills AS z ON z.id = y.backfill_id WHERE y.table_id = b.table_id "
    "AND y.generation = b.generation AND NOT y.heals "
    "AND (z.created_at < a.created_at OR (z.created_at = a.created_at AND z.id < a.id))"
)
"""An earlier backfill of the same generation as ``a``: backfills after it only continue its work."""


def _filled(d: Dialect) -> str:
    """Per table that a backfill fills or has filled: offsets of its history, and how many of them it has."""
    known = f"({d.total('a.history_upper')} - {d.total('b.from_position')})"
    staged = f"({d.total('COALESCE(r.position, t.position)')} - {d.total('b.from_position')} + b.ahead)"
    return (
        f"SELECT b.table_id, {known} AS known, {d.least(known, staged)} AS staged, "
        f"{d.truth('COALESCE(r.next_tick, t.next_tick) > a.history_tick')} AS complete "
        "FROM backfill_tables AS b JOIN backfills AS a ON a.id = b.backfill_id JOIN tables AS t ON t.id = b.table_id "
        "LEFT JOIN replacements AS r ON r.table_id = b.table_id WHERE NOT b.heals "
        f"AND b.generation = COALESCE(r.generation, t.generation) AND NOT EXISTS ({_EARLIER})"
    )


def _tables(d: Dialect) -> str:
    """One row per table that is not dropped, outputs of old-style sources among them.

    Counted are its former generations, the current one, and one that is being filled.
    """
    own, filling = "t.rows + t.folded + t.errors", "COALESCE(g.rows + g.folded + g.errors, 0)"
    return (
        f"SELECT t.id, t.source_id, COALESCE(c.messages_received, 0) + {own} + {filling} AS messages, "
        f"COALESCE(c.updates_staged, 0) + {own} + {filling} AS staged, "
        f"COALESCE(c.updates_committed, 0) + {own} AS committed, "
        "COALESCE(f.known, 0) AS snapshot_known, COALESCE(f.staged, 0) AS snapshot_staged, "
        f"{d.truth('t.upper > 0')} AS readable, "
        # A table without a backfill got everything by its first tick.
        f"{d.truth('t.upper > 0 AND (f.table_id IS NULL OR f.complete = ' + d.truth('1 = 1') + ')')} AS complete, "
        f"{d.total('t.position')} AS position FROM tables AS t LEFT JOIN statistics AS c ON c.id = t.id "
        "LEFT JOIN replacements AS g ON g.table_id = t.id "
        f"LEFT JOIN ({_filled(d)}) AS f ON f.table_id = t.id WHERE t.status <> 'dropped'"
    )


def _known_end(d: Dialect, source: str) -> str:
    """The recorded end, or at least the end of what has been read."""
    newest = f"SELECT MAX(m.number) FROM ticks AS m WHERE m.source_id = {source}"
    upper = f"SELECT k.upper FROM ticks AS k WHERE k.source_id = {source} AND k.number = ({newest})"
    read = d.total(f"COALESCE(({upper}), (SELECT z.start FROM sources AS z WHERE z.id = {source}))")
    noted = f"COALESCE((SELECT n.offset_known FROM statistics AS n WHERE n.id = {source}), 0)"
    return d.greatest(noted, read)


def _committed_end(d: Dialect, source: str) -> str:
    newest = f"SELECT MAX(m.number) FROM ticks AS m WHERE m.source_id = {source} AND m.committed"
    upper = f"SELECT k.upper FROM ticks AS k WHERE k.source_id = {source} AND k.number = ({newest})"
    return d.total(f"COALESCE(({upper}), (SELECT z.start FROM sources AS z WHERE z.id = {source}))")


def statistics(d: Dialect) -> str:
    """A source has what it read itself, and the sums over its tables."""
    none = d.truth("1 = 0")
    of_tables = (
        "SELECT q.id, q.messages, NULL AS bytes, q.staged, q.committed, q.snapshot_known, q.snapshot_staged, "
        f"q.complete, {_known_end(d, 'q.source_id')} AS known_end, q.position FROM ({_tables(d)}) AS q "
        "WHERE NOT EXISTS (SELECT 1 FROM outputs AS p WHERE p.table_id = q.id)"
    )
    of_sources = (
        "SELECT o.id, COALESCE(MAX(c.messages_received), 0), COALESCE(MAX(c.bytes_received), 0), "
        "COALESCE(SUM(q.staged), 0), COALESCE(SUM(q.committed), 0), "
        f"{d.sum('q.snapshot_known')}, {d.sum('q.snapshot_staged')}, "
        f"{d.truth(f'COUNT(q.id) > 0 AND SUM(CASE WHEN q.complete = {none} THEN 1 ELSE 0 END) = 0')}, "
        f"{_known_end(d, 'o.id')}, {_committed_end(d, 'o.id')} FROM sources AS o "
        f"LEFT JOIN statistics AS c ON c.id = o.id LEFT JOIN ({_tables(d)}) AS q ON q.source_id = o.id "
        "WHERE o.status <> 'dropped' GROUP BY o.id"
    )
    return f"{of_tables} UNION ALL {of_sources}"
