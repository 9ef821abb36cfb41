"""The relation of read holds: who keeps the history of which table, from when on."""

from __future__ import annotations

from airflow_provider_mzshare.control.relations.dialects import Dialect
from airflow_provider_mzshare.control.relations.relation import Column, Relation


def _holds(d: Dialect) -> str:
    """The output of an old-style source is shown as that source."""
    return (
        f"SELECT h.name, COALESCE(p.source_id, h.table_id), h.at, h.holder, {d.time('h.taken_at')}, "
        f"{d.time('h.heartbeat')}, h.limit_ms, {d.time('h.dropped_at')}, h.why FROM read_holds AS h "
        "LEFT JOIN outputs AS p ON p.table_id = h.table_id"
    )


HOLDS = (
    Relation(
        "mz_internal",
        "mz_read_holds",
        "Who keeps the history of a table from being removed. Holds that were dropped are listed until they are "
        "forgotten.",
        (
            Column("name", "the hold's name, which its holder has chosen"),
            Column("object_id", "the table, or the old-style source or subsource"),
            Column("mz_timestamp", "the table can be read from this time on", "bigint"),
            Column("holder", "who holds it"),
            Column("taken_at", "since when"),
            Column("heartbeat_at", "when its holder was last heard of"),
            Column("limit_ms", "after how long without a heartbeat it is dropped, in milliseconds", "bigint"),
            Column("dropped_at", "when it was dropped; NULL while it stands"),
            Column("reason", "why it was dropped"),
        ),
        _holds,
    ),
)
