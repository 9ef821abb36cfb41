"""The command ``path``."""

from __future__ import annotations

from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_record


def register(app: typer.Typer) -> None:
    app.command("path")(path)


def path(
    table: Annotated[str, typer.Argument(help="A table.")],
    errors: Annotated[
        bool, typer.Option("--errors", help="The place of the records that could not be decoded.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Print where the Delta table behind a table is: a folder, or a URI.

    Read it through Delta: the folder also holds files that no longer belong to the table.
    """
    from airflow_provider_mzshare.control.lifecycle.locations import locate

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        found = context.find_table(catalog, table)
        with catalog.read() as session:
            location = locate(session, chosen.warehouse, found, "errors" if errors else "data")
    if not location.exists:
        typer.echo("note: nothing has been written to this table yet", err=True)
    print_record({"name": found.display, **vars(location)}, output, location.uri)
