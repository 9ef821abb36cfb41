"""The commands ``catalog upgrade`` and ``catalog repair``."""

from __future__ import annotations

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_record, print_rows
from airflow_provider_mzshare.folders import make_folder

catalog_app = typer.Typer(help="Create, upgrade or repair the catalog.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(catalog_app, name="catalog")


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
