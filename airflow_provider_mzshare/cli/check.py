"""The command ``check``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_record

EXIT_DAMAGED = 1


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    name: Annotated[str, typer.Argument(help="A table.")],
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every row, and compare the sum of the rows' hashes.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Check whether a table is whole: its log, its files, and what the catalog knows of them.

    The check reads no source. It names each damage and notes it for `mzshare status`; the exit code is then 1.
    """
    from airflow_provider_mzshare.control import hints
    from airflow_provider_mzshare.control.lifecycle.check_table import check_table

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        found = check_table(catalog, chosen.warehouse, context.find_table(catalog, name), deep=deep)
    looked = f"{found.entries} log entries, {found.files} files, {found.bytes} bytes"
    if found.is_whole:
        told = f"{found.table} is whole ({looked}{', every row' if deep else ''})"
    else:
        lines = [f"{found.table} is damaged ({looked}):", *(f"  {damage}" for damage in found.damages)]
        told = "\n".join([*lines, f"Try: {hints.resnapshot(found.table)}"])
    print_record({**asdict(found), "whole": found.is_whole}, output, told)
    if not found.is_whole:
        raise typer.Exit(EXIT_DAMAGED)
