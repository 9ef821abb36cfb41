"""The relation of journals: what a source whose upstream cannot be read twice has written down."""

from __future__ import annotations

from airflow_provider_mzshare.control.relations.dialects import Dialect
from airflow_provider_mzshare.control.relations.relation import Column, Relation

_OF_PARTITION = "s.journal = p.journal AND s.partition = p.partition"


def _journals(d: Dialect) -> str:
    """The oldest and the newest segment are looked up: their number does not count."""
    oldest = (
        f"SELECT s.announced_at FROM journal_segments AS s WHERE {_OF_PARTITION} "
        'AND s.first >= p."begin" ORDER BY s.first LIMIT 1'
    )
    newest = (
        f"SELECT s.announced_at FROM journal_segments AS s WHERE {_OF_PARTITION} "
        "AND s.first = p.newest_first AND s.epoch = p.newest_epoch AND s.number = p.newest_number"
    )
    found = (
        f'SELECT o.id, p.partition, p."begin", p."end", p.segments, p.size, p.lease_job, ({oldest}) AS oldest, '
        f"({newest}) AS newest FROM journal_partitions AS p JOIN sources AS o "
        "ON replace(o.incarnation, p.journal, '') <> o.incarnation WHERE o.status <> 'dropped'"
    )
    return (
        f'SELECT f.id, f.partition, f."begin", f."end", f.segments, f.size, {d.time("f.oldest")}, '
        f"{d.time('f.newest')}, f.lease_job FROM ({found}) AS f"
    )


JOURNALS = (
    Relation(
        "mz_internal",
        "mz_journals",
        "What the journals of sources hold: messages of an upstream that cannot be read twice, by partition.",
        (
            Column("object_id", "the source"),
            Column("partition", "the partition of its journal", "integer"),
            Column("first_offset", "the oldest message that is there; what is before it is gone", "bigint"),
            Column("next_offset", "the offset that the next message gets", "bigint"),
            Column("segments", "how many files there are", "bigint"),
            Column("bytes", "their size", "bigint"),
            Column("oldest_at", "when the last message of the oldest file was acknowledged"),
            Column("newest_at", "when the newest message was acknowledged"),
            Column("writer", "the job that writes it; NULL when nobody does"),
        ),
        _journals,
    ),
)
