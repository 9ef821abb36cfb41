"""Statements about sources and subsources as nodes."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.grammar import identifier
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.options import write_option
from airflow_provider_mzshare.control.sql.printing_parts import (
    add_decoding,
    column_definitions,
    column_names,
    column_paths,
    option,
    options,
    path,
    table_name,
)
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, LegacySpec


def create_source(statement: values.CreateSource) -> exp.Expr:
    spec, legacy = statement.spec, statement.spec.legacy
    settings = options(SOURCE_SETTINGS, statement.settings)
    if legacy:
        settings += column_paths(legacy.text_columns, legacy.exclude_columns)
    kind = kind_of(spec)
    written = kind.write(spec)
    node = nodes.CreateSource(
        this=table_name(statement.name),
        exists=statement.if_not_exists,
        kind=kind.words,
        connection=identifier(written.connection) if written.connection is not None else None,
        variant=written.variant,
        expressions=[
            option(known.words, write_option(known, written.options[known.words]))
            for known in kind.options
            if known.words in written.options
        ],
        settings=settings,
    )
    if statement.output:
        node.set("columns", column_definitions(statement.output.columns))
        # Without a FORMAT it is ENVELOPE that marks old syntax.
        add_decoding(node, statement.output, marked=True)
    if legacy:
        node.set("outputs", _outputs(legacy))
        node.set("progress", exp.Var(this=legacy.progress) if legacy.progress else None)
    return node


def _outputs(legacy: LegacySpec) -> nodes.Outputs | None:
    if legacy.shape == "all_tables":
        return nodes.Outputs(this="ALL TABLES")
    if legacy.shape == "schemas":
        return nodes.Outputs(this="SCHEMAS", expressions=[identifier(schema) for schema in legacy.schemas])
    if legacy.shape == "tables":
        subsources = [
            nodes.Subsource(this=exp.Var(this=reference), alias=exp.Var(this=name)) for reference, name in legacy.tables
        ]
        return nodes.Outputs(this="TABLES", expressions=subsources)
    return None


def alter_source(statement: values.AlterSourceSet) -> exp.Expr:
    words = {setting.field: name for name, setting in SOURCE_SETTINGS.items()}
    reset = [exp.Var(this=words[field]) for field in statement.reset]
    settings = options(SOURCE_SETTINGS, statement.settings)
    return nodes.AlterOptions(this=table_name(statement.name), kind="SOURCE", settings=settings, reset=reset)


def refresh_references(statement: values.RefreshReferences) -> exp.Expr:
    if isinstance(statement.source, QualifiedName):
        return nodes.RefreshReferences(this=table_name(statement.source))
    return nodes.RefreshReferences(this=exp.Table(this=identifier(statement.source)), id=True)


# ── subsources ────────────────────────────────────────────────────────────────────────────────────────────────────────


def create_subsource(statement: values.CreateSubsource) -> exp.Expr:
    whole = option("EXTERNAL REFERENCE", path(statement.reference)) if statement.reference else option("PROGRESS", None)
    return nodes.CreateSubsource(
        this=table_name(statement.name),
        expressions=column_definitions(statement.columns),
        source=table_name(statement.source),
        settings=[whole, *column_names(statement.text_columns, statement.exclude_columns)],
    )


def add_subsources(statement: values.AddSubsources) -> exp.Expr:
    return nodes.AddSubsources(
        this=table_name(statement.source),
        expressions=[
            nodes.Subsource(this=path(reference), alias=table_name(name) if name else None)
            for reference, name in statement.subsources
        ],
        settings=column_paths(statement.text_columns, statement.exclude_columns),
    )


def drop_subsources(statement: values.DropSubsources) -> exp.Expr:
    return nodes.DropSubsources(
        this=table_name(statement.source),
        expressions=[table_name(name) for name in statement.names],
        exists=statement.if_exists,
        cascade=statement.cascade,
    )
