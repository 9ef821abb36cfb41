"""Which outputs an old-style statement asks for, once the upstream was asked, and how they are printed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.definition_errors import BadExport, NotPossible
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName, quote
from airflow_provider_mzshare.control.statements.legacy.problems import ReferenceTaken
from airflow_provider_mzshare.control.statements.legacy.texts import name_of, parts_of, sql_of
from airflow_provider_mzshare.control.statements.purification import purify, resolve, stored_reference, written
from airflow_provider_mzshare.core.specs import LegacySpec, SourceSpec, TableSpec
from airflow_provider_mzshare.envelopes import registry as envelopes
from airflow_provider_mzshare.errors import ReferenceMissing, StatementError
from airflow_provider_mzshare.formats.registry import format_named, sql_word

Wish = tuple[ReferenceInfo, QualifiedName]
"""A reference and the name of its subsource."""
_CLAUSES = {"all_tables": "FOR ALL TABLES", "schemas": "FOR SCHEMAS", "tables": "FOR TABLES"}


@dataclass(frozen=True)
class NamedOutput:
    name: QualifiedName
    spec: TableSpec


# ── what is asked for ─────────────────────────────────────────────────────────────────────────────────────────────────


def check_shape(name: QualifiedName, spec: SourceSpec, shape: str) -> None:
    """An upstream with one output needs a source that has the rows itself; one with several needs subsources."""
    kind = kind_of(spec)
    many = kind.has_several_outputs(spec)
    if shape == "single" and many:
        raise NotPossible(
            f"source {name}: {kind.shown(spec)} has several outputs, so the source cannot hold the rows itself",
            hint=f"FOR ALL TABLES, or CREATE TABLE … FROM SOURCE {name} (REFERENCE …) for each",
        )
    if shape != "single" and not many:
        raise NotPossible(
            f"source {name}: {_CLAUSES[shape]} needs several outputs, but {kind.shown(spec)} has one",
            hint=f"leave the clause out, and CREATE TABLE … FROM SOURCE {name}",
        )


def clause_of(statement: sql.CreateSource) -> str:
    """The clause that makes the statement old syntax, for messages."""
    legacy, output = statement.spec.legacy, statement.output
    if legacy is not None and legacy.shape != "single":
        return _CLAUSES[legacy.shape]
    output = output or sql.Output()
    if output.key_format:
        return f"KEY FORMAT {sql_word(output.key_format)} VALUE FORMAT {sql_word(output.format)}"
    word = sql_word(output.format)
    return f"FORMAT {word}" if word else f"ENVELOPE {envelopes.sql_word(output.envelope)}"


def clauses_of(spec: TableSpec) -> sql.Output:
    """The clauses that say how an output is decoded. Columns that the upstream has anyway are not listed."""
    clauses = sql.Output.of(spec)
    return replace(clauses, columns=()) if format_named(spec.format).own_columns else clauses


def own_output(statement: sql.CreateSource, legacy: LegacySpec, reference: ReferenceInfo) -> TableSpec:
    """The output of a source that has the rows itself."""
    output = statement.output or sql.Output()
    return _export(statement.name, statement.name, statement.spec, reference, legacy, [reference], output)


def asked_subsources(
    source: QualifiedName, spec: SourceSpec, legacy: LegacySpec, references: Sequence[ReferenceInfo]
) -> list[NamedOutput]:
    """In the order of their references."""
    return named_outputs(source, spec, legacy, _wishes(source, legacy, references))


def named_outputs(
    source: QualifiedName, spec: SourceSpec, options: LegacySpec, wishes: Sequence[Wish]
) -> list[NamedOutput]:
    """:param options: the columns' options are taken from it."""
    by_reference: dict[str, Wish] = {}
    for wish in wishes:
        first = by_reference.setdefault(written(wish[0]), wish)
        if first is not wish:
            raise ReferenceTaken(written(wish[0]), str(source), str(first[1]))
    chosen = [reference for reference, _ in by_reference.values()]
    for text in (*options.text_columns, *options.exclude_columns):
        _reference_of(text, chosen, source)
    return [
        NamedOutput(name, _export(name, source, spec, reference, options, chosen, sql.Output()))
        for _, (reference, name) in sorted(by_reference.items())
    ]


def _wishes(source: QualifiedName, legacy: LegacySpec, references: Sequence[ReferenceInfo]) -> list[Wish]:
    if legacy.shape == "tables":
        return [
            (found := resolve(parts_of(reference), references, str(source)), _name(name, source, found))
            for reference, name in legacy.tables
        ]
    chosen = references if legacy.shape == "all_tables" else _in_schemas(source, legacy.schemas, references)
    return [(reference, default_name(source, reference)) for reference in chosen]


def _name(text: str, source: QualifiedName, reference: ReferenceInfo) -> QualifiedName:
    return name_of(text, source.schema) if text else default_name(source, reference)


def default_name(source: QualifiedName, reference: ReferenceInfo) -> QualifiedName:
    """The reference's own name, in the schema of the source."""
    return QualifiedName(source.schema, reference.name)


def _in_schemas(
    source: QualifiedName, schemas: Sequence[str], references: Sequence[ReferenceInfo]
) -> list[ReferenceInfo]:
    known = sorted({reference.namespace for reference in references if reference.namespace is not None})
    for schema in schemas:
        if schema not in known:
            hint = f"one of {', '.join(quote(name) for name in known)}"
            raise ReferenceMissing(f"source {source} has no schema {quote(schema)} upstream", hint=hint)
    return [reference for reference in references if reference.namespace in schemas]


# ── one export ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _export(
    name: QualifiedName,
    source: QualifiedName,
    spec: SourceSpec,
    reference: ReferenceInfo,
    options: LegacySpec,
    chosen: Sequence[ReferenceInfo],
    output: sql.Output,
) -> TableSpec:
    """The definition of the table underneath."""

    def own(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(parts_of(text)[-1] for text in texts if _reference_of(text, chosen, source) is reference)

    table = as_table(name, source, reference, output, own(options.text_columns), own(options.exclude_columns))
    if reference.columns is None and kind_of(spec).has_columns:
        return table.to_spec(reference.name, reference.namespace)  # stored by its name only: no such output exists yet
    return purify(table, spec, reference)


def as_table(
    name: QualifiedName,
    source: QualifiedName,
    reference: ReferenceInfo,
    output: sql.Output,
    text_columns: tuple[str, ...] = (),
    exclude_columns: tuple[str, ...] = (),
) -> sql.CreateTable:
    """The statement of today that makes the same."""
    return sql.CreateTable(
        name=name,
        if_not_exists=False,
        source=source,
        reference=reference_parts(reference),
        **output.by_name(),
        options={"text_columns": text_columns, "exclude_columns": exclude_columns},
    )


def reference_parts(reference: ReferenceInfo) -> sql.Reference:
    return tuple(part for part in (reference.namespace, reference.name) if part is not None)


def _reference_of(text: str, chosen: Sequence[ReferenceInfo], source: QualifiedName) -> ReferenceInfo:
    """``[[…]reference.]column``: the reference may be left out where there is one."""
    *of, _column = parts_of(text)
    if of:
        return resolve(tuple(of), chosen, str(source))
    if len(chosen) == 1:
        return chosen[0]
    raise BadExport(f"source {source}: column {text} may belong to any output", hint=f"reference.{text}")


# ── telling it again ──────────────────────────────────────────────────────────────────────────────────────────────────


def described(
    source: QualifiedName,
    legacy: LegacySpec,
    outputs: Sequence[NamedOutput],
    progress: QualifiedName,
    *,
    listed: bool = False,
) -> LegacySpec:
    """The outputs as the statement would say them now, in its one canonical form.

    :param listed: subsources were added or dropped, so each of them must be named.
    """
    own = progress == default_progress(source)
    ordered = sorted(outputs, key=lambda output: written(stored_reference(output.spec)))
    usual = all(output.name == default_name(source, stored_reference(output.spec)) for output in outputs)
    shape: Literal["single", "all_tables", "schemas", "tables"] = legacy.shape
    if shape != "single" and (listed or not usual):
        shape = "tables"
    return LegacySpec(
        shape=shape,
        schemas=tuple(sorted(set(legacy.schemas))) if shape == "schemas" else (),
        tables=tuple((_reference_sql(o.spec), str(o.name)) for o in ordered) if shape == "tables" else (),
        progress=None if own else str(progress),
        text_columns=tuple(_columns_sql(o.spec, c, shape) for o in ordered for c in o.spec.text_columns),
        exclude_columns=tuple(_columns_sql(o.spec, c, shape) for o in ordered for c in o.spec.exclude_columns),
    )


def default_progress(source: QualifiedName) -> QualifiedName | None:
    """None where it would be too long for a name."""
    try:
        return QualifiedName(source.schema, f"{source.name}_progress")
    except StatementError:
        return None


def _reference_sql(spec: TableSpec) -> str:
    return sql_of(reference_parts(stored_reference(spec)))


def _columns_sql(spec: TableSpec, column: str, shape: str) -> str:
    return sql_of([column] if shape == "single" else [*reference_parts(stored_reference(spec)), column])
