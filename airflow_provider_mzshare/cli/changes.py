"""The command ``changes``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from airflow_provider_mzshare.cli import context, numbers
from airflow_provider_mzshare.cli.read import first_rows, rows_of, tell_not_live
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_lines, print_rows

_FIRST = "Begin with the rows as of this mz_timestamp; with --no-snapshot, with its changes. Default: as of now."

AsOfOption = Annotated[int | None, typer.Option("--as-of", metavar="MS", callback=numbers.whole, help=_FIRST)]
UpToOption = Annotated[
    int | None,
    typer.Option("--up-to", metavar="MS", callback=numbers.whole, help="Print only what is before this mz_timestamp."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=0, metavar="N", callback=numbers.whole, help="Print only the first N.")
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", min=0, metavar="S", callback=numbers.seconds, help="With -f: end after S seconds."),
]


def register(app: typer.Typer) -> None:
    app.command("changes")(changes)


def changes(
    name: Annotated[str, typer.Argument(help="A table.")],
    as_of: AsOfOption = None,
    up_to: UpToOption = None,
    no_snapshot: Annotated[
        bool, typer.Option("--no-snapshot", help="Print only changes: all that there are, or those from --as-of on.")
    ] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="Also print when there is nothing more before an mz_timestamp.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until you stop it or --up-to is reached.")
    ] = False,
    timeout: TimeoutOption = None,
    limit: LimitOption = None,
    system_columns: Annotated[
        bool, typer.Option("--system-columns", help="Also print tick, partition and offset of each row.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Print what has changed in a table: its rows as of a time, then each row that came (1) or went (-1), in order."""
    if timeout is not None and not follow:
        raise typer.BadParameter("--timeout goes with -f")
    from airflow_provider_mzshare.control.lifecycle.change_following import follow_changes
    from airflow_provider_mzshare.control.lifecycle.change_stream import Asked, open_changes
    from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name

    typed_name(name)
    chosen = context.settings()
    asked = Asked(as_of, up_to, not no_snapshot, progress, None, system_columns)
    with context.open_catalog(chosen) as catalog:
        what = catalog, chosen.warehouse, name, asked
        if follow:
            with follow_changes(*what, timeout=timeout, not_live=tell_not_live) as coming:
                print_lines(coming.schema.names, _limited(coming, limit), output)
        else:
            with open_changes(*what, not_live=tell_not_live) as found:
                _print(found, limit, output)


def _print(found: Any, limit: int | None, output: Output) -> None:
    rows: Iterator[dict[str, Any]] = islice(rows_of(found), limit)
    if limit is None and output is Output.table:
        rows = first_rows(rows)
    print_rows(found.schema.names, rows, output)


def _limited(batches: Iterable[Any], limit: int | None) -> Iterator[Iterator[dict[str, Any]]]:
    left = limit
    while left is None or left > 0:
        batch = next(iter(batches), None)
        if batch is None:
            return
        yield islice(rows_of([batch]), left)
        left = None if left is None else left - batch.num_rows
