"""Relations about what sources can export and do export: references, and the tables that take them."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.control.relations.dialects import Dialect
from airflow_provider_mzshare.control.relations.objects import envelope, key_columns, key_format, value_format
from airflow_provider_mzshare.control.relations.relation import Column, ColumnType, Relation
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS, TableSpec

_TABLE_ID = Column("id", "the table, or the old-style source or subsource")
_UPSTREAM_TABLE = (
    Column("id", "the table"), Column("schema_name", "upstream"), Column("table_name", "upstream"),
)  # fmt: skip


def exported(columns: str, joins: str = "", where: str = "") -> str:
    """Tables ``t`` that are not dropped. The output of an old-style source has that source's id: ``id``."""
    return (
        f"SELECT COALESCE(p.source_id, t.id) AS id, {columns} FROM tables AS t LEFT JOIN outputs AS p "
        f"ON p.table_id = t.id {joins} WHERE t.status <> 'dropped' {where}"
    )


def _references(d: Dialect) -> str:
    return (
        f"SELECT r.source_id, r.namespace, r.name, {d.time('r.updated_at')}, {d.names('r.columns')} "
        "FROM source_references AS r JOIN items AS i ON i.id = r.source_id WHERE i.dropped_at IS NULL"
    )


_OF_SOURCE = "JOIN sources AS o ON o.id = t.source_id"
PLANNED = ("mysql",)
"""Kinds that are planned: their relations exist, and are empty."""


def _records_of(kind: str, title: str) -> Relation:
    """Tables whose records a format decodes."""

    def query(d: Dialect) -> str:
        columns = (
            f"{d.field('t.spec', 'reference')}, {envelope(d, 't.spec')}, "
            f"{key_format(d, 't.spec')}, {value_format(d, 't.spec')}"
        )
        return exported(columns, _OF_SOURCE, f"AND p.source_id IS NULL AND {_is_of(d, kind)}")

    about = f"Tables that {title} feeds."
    columns = (
        Column("id", "the table"),
        Column("topic", "the topic that feeds it"),
        Column("envelope_type", "`none`, `upsert` or `debezium`"),
        Column("key_format", "`json`, `text` or `bytes`, if it includes the key"),
        Column("value_format", "`json`, `text` or `bytes`"),
    )
    return Relation("mz_internal", f"mz_{kind}_source_tables", about, columns, query)


def _tables_of(kind: str, more: str = "") -> Relation:
    """Tables that are tables upstream as well."""

    def query(d: Dialect) -> str:
        columns = f"{d.field('t.spec', 'namespace')}, {d.field('t.spec', 'reference')}"
        return exported(columns, _OF_SOURCE, f"AND {_is_of(d, kind)}")

    about = f"Which upstream table feeds which table.{more}"
    return Relation("mz_internal", f"mz_{kind}_source_tables", about, _UPSTREAM_TABLE, query)


def _is_of(d: Dialect, kind: str) -> str:
    return f"{d.field('o.spec', 'kind')} = '{kind}'"


def _of_kinds() -> Iterator[Relation]:
    """Relations of single kinds of sources. Only of our own kinds: they must not depend on what else is installed."""
    for kind in map(CONNECTORS.get, CONNECTORS.own):
        if kind.relation == "records":
            yield _records_of(kind.kind, kind.title)
        elif kind.relation == "tables":
            yield _tables_of(kind.kind)
    for name in PLANNED:
        if name not in CONNECTORS.own:
            yield _tables_of(name, f" Empty: there are no `{name.upper()}` sources yet.")


def _exports(d: Dialect) -> str:
    spec = "t.spec"
    config = d.pair(encoding=d.field(spec, "format"), envelope=envelope(d, spec))
    parts = ", ".join(d.part(spec, name) for name in ("details", "columns", "include"))
    keys = ", ".join((key_format(d, spec), _list(d, spec, "key_columns"), key_columns(d, spec)))
    options = ", ".join(_option_value(d, spec, option) for option in _OPTIONS)
    return exported(
        f"t.source_id, {d.field(spec, 'namespace')}, {d.field(spec, 'reference')}, {config}, {parts}, "
        f"{keys}, {d.field(spec, 'inline_errors')}, {options}, t.spec_version"
    )


_OPTIONS = sorted(TABLE_OPTIONS.values(), key=lambda option: option.type != "names")
"""Options that name columns come first, beside the columns."""


def _option_value(d: Dialect, spec: str, option: Option) -> str:
    """The value, in the type of ``_option_column``. A spec that was stored before the option has its default."""
    if option.type == "names":
        return _list(d, spec, option.field)
    value, usual = d.field(spec, option.field), TableSpec.model_fields[option.field].default
    if option.type in ("duration", "whole"):
        return f"COALESCE(CAST({value} AS BIGINT), {int(usual)})"
    if option.type == "boolean":
        value = {"sqlite": value, "postgresql": f"({value})::boolean"}[d.name]
        return f"COALESCE({value}, {str(usual).lower()})"
    return f"COALESCE({value}, '{usual}')"


def _list(d: Dialect, spec: str, field: str) -> str:
    """Empty where the spec was stored before there was such a field."""
    empty = d.document("'[]'")
    return f"COALESCE({d.part(spec, field)}, {empty})"


def _option_column(option: Option) -> Column:
    kinds: dict[str, ColumnType] = {"names": "jsonb", "duration": "bigint", "whole": "bigint", "boolean": "boolean"}
    return Column(option.field, option.stored, kinds.get(option.type, "text"))


EXPORTS = (
    Relation(
        "mz_internal",
        "mz_source_references",
        "What a source can export, as it was at `CREATE SOURCE` or at the last `REFRESH REFERENCES`.",
        (
            Column("source_id", "the source"),
            Column("namespace", "the schema of the reference; NULL for Kafka"),
            Column("name", "the topic, table or output"),
            Column("updated_at", "when the upstream was asked"),
            Column("columns", "names of its columns; NULL for Kafka, which has none", "text[]"),
        ),
        _references,
    ),
    *_of_kinds(),
    Relation(
        "mz_internal",
        "mz_source_exports",
        "Each export, field by field, as it was resolved when it was made.",
        (
            _TABLE_ID,
            Column("source_id", "the source"),
            Column("namespace", "the schema of the reference; NULL for Kafka"),
            Column("reference", "the topic, table or output"),
            Column("data_config", "`encoding` and `envelope`", "jsonb"),
            Column(
                "details", "what the source needs to fill the table, by kind of source; NULL for old tables", "jsonb"
            ),
            Column("columns", "name and type of each column; empty if there is only the column `data`", "jsonb"),
            Column("include", "metadata columns: what each holds, and its name", "jsonb"),
            Column("key_format", "how the key is decoded; NULL if no column holds the key"),
            Column("key_columns", "columns that the key is decoded into: name and type of each", "jsonb"),
            Column("key", "names of the columns that make the key; NULL if rows never change", "jsonb"),
            Column("inline_errors", "the column that says why a value cannot be decoded; NULL if there is none"),
            *map(_option_column, _OPTIONS),
            Column("spec_version", "the version of the definition; it grows with `ALTER TABLE … SET`", "bigint"),
        ),
        _exports,
    ),
)
