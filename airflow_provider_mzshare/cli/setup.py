"""Commands that get things ready: ``jars``, ``catalog``, ``doctor``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, console, print_record, print_rows
from airflow_provider_mzshare.folders import make_folder

if TYPE_CHECKING:
    from airflow_provider_mzshare.compute.jars import Progress

catalog_app = typer.Typer(help="Create, upgrade or repair the catalog.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.command("jars")(jars)
    app.add_typer(catalog_app, name="catalog")
    app.command("doctor")(doctor)


def jars(
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group: spark or kafka.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Fetch nothing; fail unless all are there.")] = False,
    output: OutputOption = Output.table,
) -> None:
    """Fetch the pinned jars and check every byte of them."""
    from airflow_provider_mzshare.compute import jars as pinned_jars

    groups = group or list(pinned_jars.GROUPS)
    if unknown := [one for one in groups if one not in pinned_jars.GROUPS]:
        raise typer.BadParameter(f"there is no jar group {unknown[0]!r}: one of {', '.join(pinned_jars.GROUPS)}")
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


@catalog_app.command("upgrade")
def upgrade(output: OutputOption = Output.table) -> None:
    """Create the catalog, or bring it to the version this package needs."""
    chosen = context.settings()
    if chosen.catalog_is_embedded:
        make_folder(chosen.home, chosen.umask)
    with context.open_catalog(chosen) as catalog:
        before = catalog.revision()
        catalog.upgrade()
        after = catalog.revision()
        done = "created" if before is None else "upgraded" if before != after else "up to date"
        record = {"catalog": catalog.display_url, "result": done, "before": before, "after": after}
        print_record(record, output, f"catalog {catalog.display_url}: {done} (schema {after})")


@catalog_app.command("repair")
def repair(output: OutputOption = Output.table) -> None:
    """Put back the ticks that the tables hold and a restored catalog has lost."""
    from airflow_provider_mzshare.control.lifecycle.repair import repair_catalog

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        report = repair_catalog(catalog, chosen.warehouse)
    if output is Output.table and not report:
        typer.echo("nothing to repair")
    else:
        print_rows(("source", "ticks", "removed", "resumed"), [vars(one) for one in report], output)


def doctor(
    connection: Annotated[list[str] | None, typer.Argument(help="Connections to try as well.")] = None,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Start Spark, as an app does.")] = True,
    output: OutputOption = Output.table,
) -> None:
    """Look whether everything here can do the work."""
    from airflow_provider_mzshare.control.supervision.doctor import examine

    findings = list(examine(context.settings(), context.connections(), connection or (), spark=spark))
    rows = [{**asdict(f), "ok": ("yes" if f.ok else "NO") if output is Output.table else f.ok} for f in findings]
    print_rows(("check", "ok", "detail", "hint"), rows, output)
    if bad := [f.check for f in findings if not f.ok]:
        typer.echo(f"error: not well: {', '.join(bad)}. Try: what the hints say", err=True)
        raise typer.Exit(1)
