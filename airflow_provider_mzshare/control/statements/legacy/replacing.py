"""The statements of today that say what an old-style one says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import MAX_NAME_BYTES, QualifiedName
from airflow_provider_mzshare.control.sql.printing import print_statement
from airflow_provider_mzshare.control.statements.legacy.outputs import NamedOutput, as_table, clauses_of
from airflow_provider_mzshare.control.statements.purification import stored_reference

_END = "_source"


def new_statements(statement: sql.CreateSource, outputs: Sequence[NamedOutput]) -> list[str]:
    """The source, then a table for each output. A source that has the rows itself leaves its name to the table."""
    single = statement.output is not None or any(output.name == statement.name for output in outputs)
    name = _source_name(statement.name) if single else statement.name
    source = replace(statement, name=name, spec=statement.spec.model_copy(update={"legacy": None}), output=None)
    return [print_statement(source), *(print_statement(table_statement(output, name)) for output in outputs)]


def table_statement(output: NamedOutput, source: QualifiedName) -> sql.CreateTable:
    spec = output.spec
    reference, clauses = stored_reference(spec), clauses_of(spec)
    return as_table(output.name, source, reference, clauses, spec.text_columns, spec.exclude_columns)


def _source_name(name: QualifiedName) -> QualifiedName:
    """What a migration would call it."""
    room = MAX_NAME_BYTES - len(_END)
    return QualifiedName(name.schema, name.name.encode()[:room].decode(errors="ignore") + _END)
