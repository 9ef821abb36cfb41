"""The commands ``holds list`` and ``holds drop``; ``holds`` alone lists."""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict
from typing import Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_record, print_rows, visible

_COLUMNS = (
    "name", "table", "at", "holder", "taken_at", "heard_seconds", "limit_seconds", "dropped_at", "why",
)  # fmt: skip
holds_app = typer.Typer(help="Read holds: who keeps the history of tables, and from when on.")


def register(app: typer.Typer) -> None:
    app.add_typer(holds_app, name="holds")


@holds_app.callback(invoke_without_command=True)
def holds(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """Read holds: who keeps the history of tables, and from when on. Alone, it lists them."""
    if ctx.invoked_subcommand is None:
        _list(None, output)


@holds_app.command("list")
def list_all(
    table: Annotated[str | None, typer.Argument(help="Only the holds on this table.", show_default=False)] = None,
    output: OutputOption = Output.table,
) -> None:
    """List the holds that stand, and those that were dropped and whose holders are still to be told."""
    _list(table, output)


def _list(table: str | None, output: Output) -> None:
    from airflow_provider_mzshare.control.lifecycle.holding import shown_holds

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        only = None if table is None else [context.find_table(catalog, table).id]
        with catalog.read() as session:
            found = [asdict(hold) for _, hold in shown_holds(session, only)]
    if output is Output.table and not found:
        typer.echo("nobody holds anything")
    else:
        print_rows(_COLUMNS, found, output)


@holds_app.command("drop")
def drop(
    name: Annotated[str, typer.Argument(help="The name of the hold.")],
    output: OutputOption = Output.table,
) -> None:
    """Drop a hold: since may move on, and its holder is told when it asks next.

    A hold that was dropped before is forgotten: its holder could then take a new one under this name.
    """
    from airflow_provider_mzshare.control.catalog.log.holds import HoldStore

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        why = f"{getpass.getuser()} on {socket.gethostname()} dropped it by hand"
        hold, table = HoldStore(catalog).drop(name, why)
    done = "dropped" if hold.dropped_at is None else "forgotten"
    record = {"name": name, "table": table, "at": hold.at, "holder": hold.holder, "result": done}
    print_record(record, output, visible(f"{done}: the hold {name!r} of {hold.holder} on {table} at {hold.at}"))
