"""The command ``status``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows, visible
from airflow_provider_mzshare.storage.collections.uris import collection_uri

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus

_SOURCE = (
    "id", "name", "health", "tables", "tick", "rate", "lag", "age_seconds", "job", "pid", "position", "mz_timestamp",
    "reason", "hint",
)  # fmt: skip
_TABLE = (
    "id", "name", "source", "status", "rows", "errors", "rate", "lag", "position", "since", "upper", "reason", "hint",
    "source_health", "source_reason", "job", "generation", "backfill", "backfill_job", "backfill_rate", "done", "total",
    "ticks_behind", "behind", "seconds_left", "new_generation", "new_status", "location",
    "queue_place", "queue_length", "key", "holds",
)  # fmt: skip
_FOR_PEOPLE = ("name", "health", "status", "tables", "tick", "rows", "errors", "rate", "lag", "age", "position")
_PARTITIONS_SHOWN = 4


def register(app: typer.Typer) -> None:
    app.command("status")(status)


def status(
    name: Annotated[
        str | None, typer.Argument(help="A source (with its tables) or a table. Default: all sources.")
    ] = None,
    lag: Annotated[
        bool, typer.Option("--lag/--no-lag", help="Ask the upstreams how far behind the sources are.")
    ] = True,
    output: OutputOption = Output.table,
) -> None:
    """Show the state of sources and tables, and the next step where something is wrong."""
    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        reader = context.wiring(catalog, chosen).status_reader(ask_upstreams=lag)
        if name is None:
            rows = [_row(source, lag and source.health != "stalled") for source in reader.sources()]
            _print(_SOURCE, rows, output)
            return
        source, tables = reader.named(name)
    asked = lag and source.health != "stalled"
    if output is Output.table:
        _print(_SOURCE, [_row(source, asked)], output)
        typer.echo("")
    of_source = {"source_health": source.health, "source_reason": source.reason, "job": source.job}
    places = [collection_uri(chosen.warehouse, table.location) for table in tables]
    rows = [_row(table, asked) | of_source | {"location": place} for table, place in zip(tables, places, strict=True)]
    _print(_TABLE, rows, output)


def _print(columns: tuple[str, ...], rows: list[dict[str, Any]], output: Output) -> None:
    if output is not Output.table:
        print_rows(columns, rows, output)
        return
    rows = [for_people(row) for row in rows]
    shown = {"age" if column == "age_seconds" else column for column in columns}
    empty = {c for c in shown if rows and all(row.get(c) in (None, "") for row in rows)}
    print_rows([c for c in _FOR_PEOPLE if c in shown - empty], rows, output)
    for note in filter(None, map(note_on, rows)):
        typer.echo(visible(note))
    for row in rows:
        for line in row.get("held", ()):
            typer.echo(visible(f"{row['name']}: {line}"))


def note_on(row: Mapping[str, Any]) -> str:
    """Reason and next step on a separate line: from a narrow column nobody could copy a command."""
    reason = row["reason"].rstrip(".") or (f"{row['errors']} records did not decode" if row.get("errors") else "")
    if not reason:
        return ""
    return f"{row['name']}: {reason}{'. Try: ' if row['hint'] else ''}{row['hint']}"


def for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same row, as short as a terminal of 80 columns needs it."""
    age, offsets, shown = row.get("age_seconds"), row["position"], row.get("shown") or {}
    if len(offsets) > _PARTITIONS_SHOWN:
        position = f"{len(offsets)} partitions, {sum(offsets.values())} in all"
    else:
        position = " ".join(f"{partition}:{shown.get(partition, offset)}" for partition, offset in offsets.items())
    lag = "?" if row["lag"] is None and row["lag_asked"] else row["lag"]
    return {**row, "position": position, "age": None if age is None else f"{age} s", "lag": lag}


def _row(status: SourceStatus | TableStatus, lag_asked: bool) -> dict[str, Any]:
    row = {**asdict(status), "lag_asked": lag_asked, "held": [hold.line for hold in getattr(status, "holds", ())]}
    row["position"] = dict(status.position.offsets)
    for key in ("rate", "age_seconds", "backfill_rate", "seconds_left"):
        if row.get(key) is not None:
            row[key] = round(row[key], 1)
    return row
