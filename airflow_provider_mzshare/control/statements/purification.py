"""The complete definition of a table, once its upstream was asked: its reference, real columns, details. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kind import ConnectorKind
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.definition_errors import AmbiguousReference, BadExport, UnknownColumn
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.checks import Misfit, check_columns, unfit_for_key
from airflow_provider_mzshare.control.sql.column_types import to_sql
from airflow_provider_mzshare.control.sql.grammar import listing
from airflow_provider_mzshare.control.sql.names import quote
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import ColumnSpec, SourceSpec, TableSpec
from airflow_provider_mzshare.envelopes.base import wraps_rows
from airflow_provider_mzshare.envelopes.registry import choices as envelope_choices
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.envelopes.registry import sql_word as envelope_word
from airflow_provider_mzshare.errors import ReferenceMissing
from airflow_provider_mzshare.formats.registry import any_of, format_named, sql_word, sql_words
from airflow_provider_mzshare.storage.writing.member_plans import key_of

_TEXT = "text"


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(reference: ReferenceInfo) -> str:
    """As it must be written in SQL."""
    return ".".join(quote(part) for part in (reference.namespace, reference.name) if part is not None)


def resolve(asked: sql.Reference | None, references: Sequence[ReferenceInfo], source: str) -> ReferenceInfo:
    """Which one is meant; with fewer parts than it has where that is clear. ``source`` is written as in SQL."""
    choices = [written(reference) for reference in references]
    if asked is None:
        if len(references) == 1:
            return references[0]
        raise AmbiguousReference(f"source {source} has {len(references)} references: name one of them", choices)
    found = [reference for reference in references if _means(asked, reference)]
    shown = ".".join(quote(part) for part in asked)
    if not found:
        hint = f"REFERENCE {choices[0]}" if len(choices) == 1 else f"one of {', '.join(choices)}"
        raise ReferenceMissing(f"source {source} has no reference {shown}", hint=hint)
    if len(found) > 1:
        raise AmbiguousReference(f"reference {shown} is ambiguous", [written(reference) for reference in found])
    return found[0]


def _means(asked: sql.Reference, reference: ReferenceInfo) -> bool:
    parts = [part for part in (reference.namespace, reference.name) if part is not None]
    if reference.database is not None:
        parts = [reference.database, *parts]
    return len(asked) <= len(parts) and tuple(parts[-len(asked) :]) == asked


def stored_reference(spec: TableSpec) -> ReferenceInfo:
    """The reference that an existing table was made from, as it was then."""
    if spec.details is None:
        return ReferenceInfo(spec.namespace, spec.reference)
    return kind_of(spec.details).stored_reference(spec)


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def purify(statement: sql.CreateTable, source: SourceSpec, reference: ReferenceInfo) -> TableSpec:
    """The complete definition: nothing else has to be asked."""
    kind = kind_of(source)
    if reference.unfit:
        raise BadExport(f"table {statement.name}: {written(reference)}: {reference.unfit}", hint=reference.remedy)
    if reference.columns is not None and not format_named(statement.format).own_columns:
        raise _undecodable(statement, reference, kind)
    statement = _with_own(statement, kind)
    _check_metadata(statement, kind)
    if reference.columns is None:
        _check_decoded(statement, kind)
        spec = statement.to_spec(reference.name, reference.namespace)
    else:
        columns = _own_columns(statement, reference)
        order = [column.name for column in reference.columns]
        spec = statement.to_spec(reference.name, reference.namespace).model_copy(
            update={
                "columns": columns,
                "text_columns": tuple(name for name in order if name in statement.text_columns),
                "exclude_columns": tuple(name for name in order if name in statement.exclude_columns),
            }
        )
    spec = spec.model_copy(update={"details": kind.export(source, spec, reference)})
    _check_key(statement, spec, reference)
    return spec


def _with_own(statement: sql.CreateTable, kind: ConnectorKind[Any]) -> sql.CreateTable:
    """With the format and the envelope that all tables of the kind have, if it says so."""
    if kind.own_envelope == DEFAULT_ENVELOPE:
        return statement
    unsaid = (DEFAULT_ENVELOPE, kind.own_envelope)
    if statement.envelope not in unsaid:
        raise BadExport(
            f"table {statement.name}: a {kind.title} table always has the rows that are there upstream",
            hint=f"leave ENVELOPE {envelope_word(statement.envelope)} out",
        )
    if kind.is_recorded and not statement.snapshot:
        raise BadExport(
            f"table {statement.name}: a {kind.title} table always begins with the rows that are there upstream",
            hint="leave SNAPSHOT out",
        )
    return replace(statement, format=kind.own_format, envelope=kind.own_envelope)


def _check_key(statement: sql.CreateTable, spec: TableSpec, reference: ReferenceInfo) -> None:
    """A table whose rows change has a key. Where the columns are the upstream's own, so is the key."""
    if envelope_named(spec.envelope).appends or not format_named(spec.format).own_columns:
        return
    is_written, keys = spec.envelope in envelope_choices(), key_of(spec)
    word = f"ENVELOPE {envelope_word(spec.envelope)}" if is_written else "the table"
    if not keys:
        raise BadExport(
            f"table {statement.name}: {word} needs a key, and reference {written(reference)} has none",
            hint=f"leave {word} out: every record is a row then",
        )
    types = {column.name: column.type for column in spec.columns}
    for name in keys:
        if name not in types:
            raise BadExport(
                f"table {statement.name}: EXCLUDE COLUMNS leaves out {quote(name)}, which is in the key of {word}",
                hint=f"EXCLUDE COLUMNS without {quote(name)}",
            )
        if why := unfit_for_key(name, types[name]):
            raise BadExport(f"table {statement.name}: {why}", hint=f"TEXT COLUMNS ({quote(name)})")


def _check_metadata(statement: sql.CreateTable, kind: ConnectorKind[Any]) -> None:
    asked = [*(["key"] if statement.key_columns else []), *(include.what for include in statement.include)]
    for what in asked:
        if what not in kind.metadata:
            raise BadExport(
                f"table {statement.name}: records of a {kind.title} source have no {what}",
                hint=f"INCLUDE {', '.join(kind.metadata).upper()}" if kind.metadata else "leave INCLUDE out",
            )


def _check_decoded(statement: sql.CreateTable, kind: ConnectorKind[Any]) -> None:
    """For an upstream that only knows bytes: FORMAT is needed, and options of columns are not possible."""
    if format_named(statement.format).own_columns:
        raise BadExport(
            f"table {statement.name}: a {kind.title} table needs FORMAT, to say how records are decoded",
            hint=f"FORMAT {any_of(sql_words())}",
        )
    if statement.text_columns or statement.exclude_columns:
        word = "TEXT COLUMNS" if statement.text_columns else "EXCLUDE COLUMNS"
        raise BadExport(
            f"table {statement.name}: {word} needs an upstream that has columns of its own",
            hint="list the columns that are wanted, with their types",
        )


def _own_columns(statement: sql.CreateTable, reference: ReferenceInfo) -> tuple[ColumnSpec, ...]:
    """The columns of the upstream, without the excluded ones."""
    where, columns = f"reference {written(reference)}", reference.columns or ()
    known = [column.name for column in columns]
    for name in (*statement.text_columns, *statement.exclude_columns):
        if name not in known:
            raise UnknownColumn(where, name, known)
    unfit = dict(reference.text_only)
    if unknown := [n for n in unfit if n not in (*statement.text_columns, *statement.exclude_columns)]:
        raise BadExport(
            f"table {statement.name}: column {quote(unknown[0])} of {where} has the type {unfit[unknown[0]]}, which no "
            "column here can have",
            hint=f"WITH (TEXT COLUMNS ({', '.join(map(quote, unknown))})), or EXCLUDE COLUMNS",
        )
    if both := set(statement.text_columns) & set(statement.exclude_columns):
        raise BadExport(f"column {min(both)!r} is in TEXT COLUMNS and in EXCLUDE COLUMNS", hint="one of the two")
    kept = tuple(
        ColumnSpec(name=column.name, type=_TEXT if column.name in statement.text_columns else column.type)
        for column in columns
        if column.name not in statement.exclude_columns
    )
    if not kept:
        raise BadExport(f"table {statement.name}: EXCLUDE COLUMNS leaves none of {', '.join(known)}", hint="fewer")
    try:
        check_columns(sql.Output(columns=kept))
    except Misfit as error:
        raise BadExport(f"table {statement.name}: {where}: {error}", hint="EXCLUDE COLUMNS leaves it out") from None
    _check_list(statement, where, kept)
    _check_include(statement, kept)
    return kept


def _undecodable(statement: sql.CreateTable, reference: ReferenceInfo, kind: ConnectorKind[Any]) -> BadExport:
    """FORMAT is given where the columns are the upstream's own. The clauses that need it go with it.

    Otherwise they would be refused next, for want of a FORMAT.
    """
    key = f"KEY FORMAT {sql_word(statement.key_format)} VALUE " if statement.key_format else ""
    clauses = [f"{key}FORMAT {sql_word(statement.format)}"]
    problem, instead = "has columns of its own and nothing to decode", ""
    if statement.include or statement.key_columns:
        clauses.append("INCLUDE")
    if statement.inline_errors is not None:
        clauses.append("VALUE DECODING ERRORS")
    if wraps_rows(envelope_named(statement.envelope)):
        word = f"ENVELOPE {envelope_word(statement.envelope)}"
        clauses += [*(["PRIMARY KEY"] if statement.primary_key else []), word]
        problem += f", so {word} is not possible"
        keyed = reference.keys and kind.own_envelope == DEFAULT_ENVELOPE
        instead = "; ENVELOPE UPSERT has a row for each key" if keyed else ""
    return BadExport(
        f"table {statement.name}: reference {written(reference)} {problem}",
        hint=f"leave {listing(clauses, 'and')} out{instead}",
    )


def _check_list(statement: sql.CreateTable, where: str, kept: Sequence[ColumnSpec]) -> None:
    """If the statement lists columns, they must be those that the upstream gives."""
    if statement.columns and tuple(statement.columns) != tuple(kept):
        listed = ", ".join(f"{quote(column.name)} {to_sql(column.type)}" for column in kept)
        raise BadExport(
            f"table {statement.name}: the column list is not what {where} gives: ({listed})",
            hint="leave the list out; TEXT COLUMNS and EXCLUDE COLUMNS change it",
        )


def _check_include(statement: sql.CreateTable, kept: Sequence[ColumnSpec]) -> None:
    taken = {column.name.lower() for column in kept}
    for include in statement.include:
        if include.name.lower() in taken:
            raise BadExport(
                f"table {statement.name}: column {include.name} occurs twice",
                hint=f"INCLUDE {include.what.upper()} AS another name",
            )
