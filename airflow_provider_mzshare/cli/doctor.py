"""The command ``doctor``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    connection: Annotated[list[str] | None, typer.Argument(help="Connections to check as well.")] = None,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Also start Spark, as an app does.")] = True,
    output: OutputOption = Output.table,
) -> None:
    """Check that this machine has everything that apps need."""
    from airflow_provider_mzshare.control.supervision.doctor import examine

    findings = list(examine(context.settings(), context.connections(), connection or (), spark=spark))
    rows = [{**asdict(f), "ok": ("yes" if f.ok else "NO") if output is Output.table else f.ok} for f in findings]
    print_rows(("check", "ok", "detail", "hint"), rows, output)
    if bad := [f.check for f in findings if not f.ok]:
        typer.echo(f"error: these checks failed: {', '.join(bad)}. Try: what the hints say", err=True)
        raise typer.Exit(1)
