"""What a publication offers: its tables, with columns, types and keys, and why some cannot be read.

Asked of the server's catalogs, which anybody may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from airflow_provider_mzshare.connectors.postgres.specs import (
    Identifying,
    PublishedTable,
    UpstreamColumn,
    columns_of,
    text_only,
)
from airflow_provider_mzshare.connectors.postgres.types import our_type

_FILTERS, _PUBLISHED_GENERATED = 150000, 180000
"""The versions from which publications have row filters and column lists, and may have generated columns."""

_TABLES = """
SELECT c.oid::bigint, p.schemaname, p.tablename, c.relkind::text, c.relreplident::text, {filter}, {columns},
       has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
       row_security_active(c.oid), current_user::text, quote_ident(p.schemaname) || '.' || quote_ident(p.tablename)
FROM pg_publication_tables AS p
JOIN pg_namespace AS n ON n.nspname = p.schemaname
JOIN pg_class AS c ON c.relname = p.tablename AND c.relnamespace = n.oid
WHERE p.pubname = %s
ORDER BY p.schemaname, p.tablename
"""

_COLUMNS = """
WITH RECURSIVE bases (attrelid, attnum, oid, mod) AS (
    SELECT attrelid, attnum, atttypid, atttypmod FROM pg_attribute
    WHERE attrelid = ANY(%s::oid[]) AND attnum > 0 AND NOT attisdropped {generated}
  UNION ALL
    SELECT b.attrelid, b.attnum, t.typbasetype, CASE WHEN b.mod < 0 THEN t.typtypmod ELSE b.mod END
    FROM bases AS b JOIN pg_type AS t ON t.oid = b.oid AND t.typtype = 'd'
)
SELECT a.attrelid::bigint, a.attname, a.atttypid::bigint, a.atttypmod, format_type(a.atttypid, a.atttypmod),
       b.oid::bigint, b.mod, t.typtype = 'e'
FROM bases AS b
JOIN pg_type AS t ON t.oid = b.oid AND t.typtype <> 'd'
JOIN pg_attribute AS a ON a.attrelid = b.attrelid AND a.attnum = b.attnum
ORDER BY a.attrelid, a.attnum
"""
"""Domains are followed to what they are made of."""

_KEYS = """
SELECT i.indrelid::bigint, i.indisprimary, i.indisreplident,
       (SELECT array_agg(a.attname::text ORDER BY k.place)
        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
        WHERE k.place <= i.indnkeyatts)
FROM pg_index AS i
WHERE i.indrelid = ANY(%s::oid[]) AND (i.indisprimary OR i.indisreplident) AND i.indimmediate AND i.indisvalid
"""


@dataclass(frozen=True)
class _Found:
    """A row of the first query."""

    oid: int
    schema: str
    name: str
    relkind: str
    identity: Identifying
    row_filter: str | None
    listed: Sequence[str] | None
    readable: bool
    secured: bool
    user: str
    quoted: str


def references(session: psycopg.Connection[Any], publication: str) -> tuple[PublishedTable, ...]:
    """All tables of a publication, by schema and name."""
    version = session.info.server_version
    known = version >= _FILTERS
    query = _TABLES.format(
        filter="p.rowfilter" if known else "NULL::text", columns="p.attnames::text[]" if known else "NULL::text[]"
    )
    found = [_Found(*row) for row in session.execute(query.encode(), [publication])]
    oids = [table.oid for table in found]
    columns: dict[int, list[UpstreamColumn]] = {oid: [] for oid in oids}
    generated = "" if version >= _PUBLISHED_GENERATED else "AND attgenerated = ''"
    for oid, name, type_oid, mod, shown, base, base_mod, is_enum in session.execute(
        _COLUMNS.format(generated=generated).encode(), [oids]
    ):
        ours = our_type(base, base_mod, is_enum=is_enum)
        columns[oid].append(UpstreamColumn(name=name, oid=type_oid, mod=mod, upstream=shown, type=ours))
    keys: dict[tuple[int, str], tuple[str, ...]] = {}
    for oid, is_primary, is_identity, names in session.execute(_KEYS.encode(), [oids]):
        for wanted, holds in (("d", is_primary), ("f", is_primary), ("i", is_identity)):
            if holds:
                keys[oid, wanted] = tuple(names)
    return tuple(_reference(table, columns[table.oid], keys.get((table.oid, table.identity), ())) for table in found)


def _reference(table: _Found, columns: Sequence[UpstreamColumn], keys: tuple[str, ...]) -> PublishedTable:
    published = tuple(column for column in columns if table.listed is None or column.name in table.listed)
    unfit, remedy = _why_not(table, {column.name for column in published}, keys)
    return PublishedTable(
        namespace=table.schema,
        name=table.name,
        columns=columns_of(published),
        keys=keys,
        text_only=text_only(published),
        unfit=unfit,
        remedy=remedy,
        oid=table.oid,
        identity=table.identity,
        published=published,
    )


def _why_not(table: _Found, published: set[str], keys: Sequence[str]) -> tuple[str, str]:
    """Why no table can be made of this one, and what its owner can do; empty if one can."""
    name = table.quoted
    if not table.readable:
        return f"user {table.user!r} may not read it", (
            f"GRANT USAGE ON SCHEMA {name.rpartition('.')[0]} TO {table.user}; GRANT SELECT ON {name} TO {table.user}"
        )
    if table.secured:
        return (
            f"row-level security hides rows of it from user {table.user!r}",
            f"ALTER ROLE {table.user} BYPASSRLS",
        )
    if table.relkind == "p":
        return (
            "it is partitioned, and published as a whole",
            "ALTER PUBLICATION … SET (publish_via_partition_root = false), which offers its partitions",
        )
    if table.row_filter is not None:
        return "the publication has a row filter for it", "a publication of the table without WHERE"
    return _why_no_key(table, published, keys)


def _why_no_key(table: _Found, published: set[str], keys: Sequence[str]) -> tuple[str, str]:
    name = table.quoted
    if table.identity == "n":
        return (
            "its REPLICA IDENTITY is NOTHING, so that its updates and deletes do not say which row they are of",
            f"ALTER TABLE {name} REPLICA IDENTITY DEFAULT",
        )
    if not keys:
        return (
            "it has no key that tells its rows apart",
            f"ALTER TABLE {name} ADD PRIMARY KEY (…), or ALTER TABLE {name} REPLICA IDENTITY USING INDEX …",
        )
    if missing := [key for key in keys if key not in published]:
        return f"its key has the column {missing[0]!r}, which is not published", "publish all columns of the key"
    return "", ""
