"""The command ``logs``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context, numbers
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows, visible


def register(app: typer.Typer) -> None:
    app.command()(logs)


def logs(
    name: Annotated[str, typer.Argument(help="A source, a table, or a job.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on, and print new lines as they come.")] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", "-n", min=0, metavar="N", callback=numbers.whole, help="Print only the last N lines."),
    ] = None,
    output: OutputOption = Output.table,
) -> None:
    """Print the log of the newest app of a source, or of the backfill that brings a table up."""
    from airflow_provider_mzshare.control.supervision.runs import find_log

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        found = find_log(catalog, context.wiring(catalog, chosen).launchers, name)
        lines = found.lines(tail=tail, follow=follow)
        if output is Output.table:
            for line in lines:
                typer.echo(visible(line.expandtabs()))
                if follow:
                    sys.stdout.flush()
        else:
            print_rows(("job", "line"), ({"job": found.job_id, "line": line} for line in lines), output)
