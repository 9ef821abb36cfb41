"""The command ``status``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.status import SourceStatus, TableStatus

_SOURCE = (
    "id", "name", "health", "tables", "tick", "rate", "lag", "age_seconds", "job", "pid", "position", "mz_timestamp",
    "reason", "hint",
)  # fmt: skip
_TABLE = (
    "id", "name", "source", "status", "rows", "errors", "rate", "lag", "position", "since", "upper", "reason", "hint",
)  # fmt: skip
_ONLY_FOR_PROGRAMS = frozenset({"mz_timestamp", "pid", "since"})


def register(app: typer.Typer) -> None:
    app.command("status")(status)


def status(
    name: Annotated[
        str | None, typer.Argument(help="A source (with its tables) or a table. Default: all sources.")
    ] = None,
    lag: Annotated[bool, typer.Option("--lag/--no-lag", help="Ask upstreams how far behind we are.")] = True,
    output: OutputOption = Output.table,
) -> None:
    """Show how sources and tables are, and what to do about it."""
    with context.open_catalog(context.settings()) as catalog:
        reader = context.status_reader(catalog, ask_upstreams=lag)
        if name is None:
            _print(_SOURCE, [_row(source) for source in reader.sources()], output)
            return
        from airflow_provider_mzshare.control.catalog.items import SourceItem

        item = context.find_item(catalog, name)
        if isinstance(item, SourceItem):
            source, tables = reader.source(item)
        else:
            source, table = reader.table(item)
            tables = [table]
    if output is Output.table and isinstance(item, SourceItem):
        _print(_SOURCE, [_row(source)], output)
        typer.echo("")
    _print(_TABLE, [_row(table) for table in tables], output)


def _print(columns: tuple[str, ...], rows: list[dict[str, Any]], output: Output) -> None:
    if output is Output.table:
        filled = {column for column in columns if any(row[column] not in (None, "") for row in rows)}
        columns = tuple(c for c in columns if c not in _ONLY_FOR_PROGRAMS and (c in filled or not rows))
    print_rows(columns, rows, output)


def _row(status: SourceStatus | TableStatus) -> dict[str, Any]:
    row = asdict(status)
    row["position"] = dict(status.position.offsets)
    for key in ("rate", "age_seconds"):
        if row.get(key) is not None:
            row[key] = round(row[key], 1)
    return row
