"""The command ``jars``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, console, print_rows

if TYPE_CHECKING:
    from airflow_provider_mzshare.compute.jars import Progress


def register(app: typer.Typer) -> None:
    app.command("jars")(jars)


def jars(
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group: spark or kafka.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Fetch nothing; fail if a jar is missing or is not the pinned one.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Fetch the pinned jars, and check every byte of them."""
    from airflow_provider_mzshare.compute import jars as pinned_jars

    groups = group or list(pinned_jars.GROUPS)
    if unknown := [one for one in groups if one not in pinned_jars.GROUPS]:
        raise typer.BadParameter(f"there is no jar group {unknown[0]!r}; there are: {', '.join(pinned_jars.GROUPS)}")
    folder = context.settings().jars or pinned_jars.default_folder()
    wanted = pinned_jars.pinned(groups)
    if check:
        pinned_jars.verify(groups, folder)
        fetched = set()
    else:
        with _fetch_progress() as progress:
            fetched = {jar.file for jar in pinned_jars.fetch(groups, folder, progress)}
    rows = (
        {
            "file": jar.file,
            "coordinate": jar.coordinate,
            "bytes": jar.size,
            "status": "fetched" if jar.file in fetched else "present",
        }
        for jar in wanted
    )
    if output is Output.table:
        typer.echo(f"{len(wanted)} jars in {folder} are the pinned ones ({len(fetched)} fetched)")
    else:
        print_rows(("file", "coordinate", "bytes", "status"), rows, output)


@contextmanager
def _fetch_progress() -> Iterator[Progress]:
    """A bar on a terminal, one line per file elsewhere; always beside the answer, on stderr."""
    if not sys.stderr.isatty():
        yield lambda done, total, name: typer.echo(f"{done / 1e6:6.1f} of {total / 1e6:.1f} MB  {name}", err=True)
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console(sys.stderr)) as bar:
        task = bar.add_task("fetching", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)
