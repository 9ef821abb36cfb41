"""Relations about what exists: schemas, sources, tables, views, comments, and what hangs on what."""

from __future__ import annotations

from airflow_provider_mzshare.control.relations.dialects import Dialect
from airflow_provider_mzshare.control.relations.relation import Column, Relation
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.formats.registry import FORMATS, NATIVE

_ID = Column("id", "the object's id; it never changes")
_SCHEMA = Column("schema_id", "`mz_schemas.id`")
_NAME = Column("name", "its name in its schema")
_SQL = Column("create_sql", "the statement that makes it, as `SHOW CREATE` prints it")

LIVE = "i.dropped_at IS NULL AND i.kind <> 'output'"
"""A condition on ``items AS i``: items that users see. The output of an old-style source is shown as that source."""


def _items(columns: str, kind: str, joins: str = "", where: str = "") -> str:
    """Rows of ``items AS i`` of one kind, with their schema ``s`` and their printed statement ``d``."""
    return (
        f"SELECT i.id, s.id AS schema_id, i.name, {columns} FROM items AS i "
        f"JOIN schemas AS s ON s.name = i.schema_name LEFT JOIN definitions AS d ON d.id = i.id {joins} "
        f"WHERE i.dropped_at IS NULL AND i.kind = '{kind}' {where}"
    )


def envelope(d: Dialect, spec: str) -> str:
    """Specs from before there were envelopes name none. NULL where there is no spec."""
    return f"CASE WHEN {spec} IS NOT NULL THEN COALESCE({d.field(spec, 'envelope')}, '{DEFAULT_ENVELOPE}') END"


def key_format(d: Dialect, spec: str) -> str:
    """How the key is decoded, from a table's spec; NULL if no column has it.

    It knows the formats that are registered when the relations are made, at each upgrade of the catalog.
    """
    keyed = {
        "sqlite": f"EXISTS (SELECT 1 FROM json_each({spec}, '$.include') WHERE json_extract(value, '$.what') = 'key')",
        "postgresql": f"""({spec}::jsonb -> 'include') @> '[{{"what": "key"}}]'::jsonb""",
    }[d.name]
    raw = ", ".join(f"'{each.name}'" for each in FORMATS.all() if each.key_type == "bytea")
    bare = f"CASE WHEN {d.field(spec, 'format')} IN ({raw}) THEN 'bytes' ELSE 'text' END"
    return f"COALESCE({d.field(spec, 'key_format')}, CASE WHEN {keyed} THEN {bare} END)"


def key_columns(d: Dialect, spec: str) -> str:
    """The names of the columns that tell a table's rows apart, as a JSON list; NULL if no row is ever changed.

    As ``key_of`` says it of the spec. Like the formats, it knows the envelopes that are registered at the upgrade.
    """
    changing = ", ".join(f"'{each.name}'" for each in ENVELOPES.all() if not each.appends)
    own = f"CASE WHEN {d.field(spec, 'format')} = '{NATIVE}' THEN {d.part(spec, 'details', 'keys')} END"
    empty = d.document("'[]'")
    named = f"NULLIF({d.part(spec, 'primary_key')}, {empty})"
    decoded = d.texts(spec, "key_columns", "name")
    whole = d.texts(spec, "include", "name", what="key")
    listed = f"COALESCE({own}, {named}, {decoded}, {whole})"
    return f"CASE WHEN {d.field(spec, 'envelope')} IN ({changing}) THEN {listed} END"


def value_format(d: Dialect, spec: str) -> str:
    """NULL where nothing is decoded."""
    return f"NULLIF({d.field(spec, 'format')}, '{NATIVE}')"


def _schemas(d: Dialect) -> str:
    return "SELECT id, name FROM schemas WHERE dropped_at IS NULL AND name <> 'mz_internal'"


def _sources(d: Dialect) -> str:
    source = _items(
        f"REPLACE({d.field('o.spec', 'kind')}, '_', '-') AS type, {d.field('o.spec', 'connection')} AS connection_id, "
        f"{envelope(d, 't.spec')} AS envelope_type, {key_format(d, 't.spec')} AS key_format, "
        f"{value_format(d, 't.spec')} AS value_format, d.create_sql",
        "source",
        "JOIN sources AS o ON o.id = i.id LEFT JOIN outputs AS p ON p.source_id = i.id "
        "LEFT JOIN tables AS t ON t.id = p.table_id",
    )
    subsource = _items("'subsource', NULL, NULL, NULL, NULL, d.create_sql", "subsource")
    progress = _items("'progress', NULL, NULL, NULL, NULL, d.create_sql", "progress")
    return f"{source} UNION ALL {subsource} UNION ALL {progress}"


def _tables(d: Dialect) -> str:
    joins = (
        "JOIN tables AS t ON t.id = i.id LEFT JOIN collections AS c ON c.table_id = t.id "
        "AND c.generation = t.generation AND c.role = 'data'"
    )
    return _items("d.create_sql, t.source_id, c.path", "table", joins)


def _views(d: Dialect) -> str:
    return _items("v.query, d.create_sql", "view", "JOIN views AS v ON v.id = i.id")


def _comments(d: Dialect) -> str:
    of_item = (
        "SELECT c.object_id, CASE WHEN i.kind IN ('subsource', 'progress') THEN 'source' ELSE i.kind END, "
        "NULLIF(c.column_name, ''), c.comment FROM comments AS c JOIN items AS i ON i.id = c.object_id "
        f"WHERE {LIVE}"
    )
    of_schema = (
        "SELECT c.object_id, 'schema', NULLIF(c.column_name, ''), c.comment FROM comments AS c "
        "JOIN schemas AS s ON s.id = c.object_id WHERE s.dropped_at IS NULL"
    )
    return f"{of_item} UNION ALL {of_schema}"


def _dependencies(d: Dialect) -> str:
    """A view that reads an old-style source reads the source's output, which is shown as the source."""
    of_views = (
        "SELECT i.id AS object_id, COALESCE(p.source_id, e.referenced_id) AS referenced_object_id "
        "FROM dependencies AS e JOIN items AS i ON i.id = e.object_id "
        f"LEFT JOIN outputs AS p ON p.table_id = e.referenced_id WHERE {LIVE}"
    )
    of_tables = f"SELECT i.id, t.source_id FROM items AS i JOIN tables AS t ON t.id = i.id WHERE {LIVE}"
    of_progress = f"SELECT i.id, n.source_id FROM items AS i JOIN progress_names AS n ON n.id = i.id WHERE {LIVE}"
    return f"{of_views} UNION ALL {of_tables} UNION ALL {of_progress}"


OBJECTS = (
    Relation(
        "mz_catalog", "mz_schemas", "The schemas.", (Column("id", "`s1`, `s2`, …; never reused"), _NAME), _schemas
    ),
    Relation(
        "mz_catalog",
        "mz_sources",
        "Sources, and the subsources and progress names of old-style sources. Tables are not among them.",
        (
            _ID,
            _SCHEMA,
            _NAME,
            Column("type", "`kafka`, `load-generator`, `subsource` or `progress`"),
            Column("connection_id", "the name of the Airflow connection; NULL if the source needs none"),
            Column("envelope_type", "`none`, `upsert` or `debezium`: of an old-style source that has the rows itself"),
            Column("key_format", "for such a source: `json`, `text` or `bytes`, if it includes the key"),
            Column("value_format", "for such a source: `json`, `text` or `bytes`"),
            _SQL,
        ),
        _sources,
    ),
    Relation(
        "mz_catalog",
        "mz_tables",
        "Tables, each fed by a source.",
        (
            _ID,
            _SCHEMA,
            _NAME,
            _SQL,
            Column("source_id", "the source that feeds it"),
            Column(
                "location", "its Delta table, relative to `MZSHARE_WAREHOUSE`; `mzshare path` prints the whole path"
            ),
        ),
        _tables,
    ),
    Relation(
        "mz_catalog",
        "mz_views",
        "Views.",
        (_ID, _SCHEMA, _NAME, Column("definition", "its query; it names what it reads by id"), _SQL),
        _views,
    ),
    Relation(
        "mz_internal",
        "mz_comments",
        "The comments that `COMMENT ON` has set.",
        (
            Column("id", "the id of the object, or of the schema"),
            Column("object_type", "`source`, `table`, `view` or `schema`"),
            Column("column_name", "NULL if the comment is about the object itself"),
            Column("comment", "the comment"),
        ),
        _comments,
    ),
    Relation(
        "mz_internal",
        "mz_object_dependencies",
        "Which object depends on which: tables depend on their source, views on what they read.",
        (Column("object_id", "the object that depends"), Column("referenced_object_id", "the object that it needs")),
        _dependencies,
    ),
)
