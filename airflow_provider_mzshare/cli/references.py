"""The command ``references``: what a source can export, as it was when its upstream was asked last."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows

_COLUMNS = ("namespace", "name", "columns", "updated_at")


def register(app: typer.Typer) -> None:
    app.command("references")(references)


def references(
    source: Annotated[str, typer.Argument(help="A source.")],
    schema: Annotated[
        str | None, typer.Option("--schema", "-s", metavar="SCHEMA", help="List only this schema of the upstream.")
    ] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the CREATE TABLE statements that export them.")] = False,
    output: OutputOption = Output.table,
) -> None:
    """List what can be exported from a source.

    The list was made at CREATE SOURCE, or at the last ALTER SOURCE … REFRESH REFERENCES.
    """
    from airflow_provider_mzshare.control.catalog.objects.references import list_references
    from airflow_provider_mzshare.control.statements.handlers.references import check_namespace, table_statements

    with context.open_catalog(context.settings()) as catalog:
        item = context.find_source(catalog, source)
        with catalog.read() as session:
            found = list_references(session, item.id)
            if schema is not None:
                check_namespace(item, found, schema)
                found = [reference for reference in found if reference.namespace == schema]
            statements = table_statements(session, item, found) if sql else []
    if sql and output is Output.table:
        typer.echo("\n".join(text for _, text in statements))
        return
    rows = [
        {
            "namespace": reference.namespace,
            "name": reference.name,
            "columns": None if reference.columns is None else ", ".join(reference.columns),
            "updated_at": datetime.fromtimestamp(reference.updated_at / 1000, tz=timezone.utc),
        }
        for reference in found
    ]
    if sql:
        rows = [{**row, "create_sql": text} for row, (_, text) in zip(rows, statements, strict=True)]
    print_rows((*_COLUMNS, "create_sql") if sql else _COLUMNS, rows, output)
