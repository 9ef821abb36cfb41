"""The command ``maintain``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows, visible

_COLUMNS = ("table", "since", "held_at", "data_files", "log_files", "bytes", "dropped_holds", "trouble")
_FOR_PEOPLE = tuple(column for column in _COLUMNS if column != "dropped_holds")


def register(app: typer.Typer) -> None:
    app.command()(maintain)


def maintain(
    source: Annotated[str | None, typer.Argument(help="Only this source's tables.", show_default=False)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be removed, and remove nothing.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Move since as RETAIN HISTORY says, remove what it passed an hour ago, and ask the apps to merge small files."""
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_source
    from airflow_provider_mzshare.control.supervision.maintenance import maintain as do

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        only = None if source is None else find_source(catalog, source).id
        done = do(catalog, chosen.warehouse, only=only, dry_run=dry_run)
    print_rows(_FOR_PEOPLE if output is Output.table else _COLUMNS, [asdict(one) for one in done], output)
    for table, hold in ((one.table, hold) for one in done for hold in one.dropped_holds):
        typer.echo(visible(f"{table}: dropped the read hold {hold}"), err=True)
    if any(one.trouble for one in done):
        raise typer.Exit(1)
