"""The command ``read``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context, numbers
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows, visible

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.catalog.queries.standings import Standing

_TABLE_ROWS = 100
"""How many rows the output as a table has; JSON and CSV have all."""
_LIMIT = f"Print only the first N rows. Default: {_TABLE_ROWS} as a table, else all."
_CHUNK = 1_000
"""How many rows are turned into Python values at once."""

AsOfOption = Annotated[
    int | None, typer.Option("--as-of", metavar="MS", callback=numbers.whole, help="Read as of this mz_timestamp.")
]
TickOption = Annotated[
    int | None, typer.Option("--tick", metavar="N", callback=numbers.whole, help="Read as of this tick.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", callback=numbers.whole, help=_LIMIT)]


def register(app: typer.Typer) -> None:
    app.command("read")(read)


def read(
    name: Annotated[str, typer.Argument(help="A table, a view, or a source for its progress.")],
    as_of: AsOfOption = None,
    tick: TickOption = None,
    limit: LimitOption = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Print the records that could not be decoded, instead of rows.")
    ] = False,
    system_columns: Annotated[
        bool, typer.Option("--system-columns", help="Also print tick, partition and offset of each row.")
    ] = False,
    require_live: Annotated[
        bool, typer.Option("--require-live", help="Fail if the table, or a table of the view, is not live.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Print the rows of a table or a view, or the progress of a source, now or as of a time."""
    if as_of is not None and tick is not None:
        raise typer.BadParameter("give --as-of or --tick, not both")
    from airflow_provider_mzshare.control.lifecycle.liveness import refuse
    from airflow_provider_mzshare.control.lifecycle.read_table import Query, open_table
    from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name

    typed_name(name)
    chosen = context.settings()
    shown = limit if limit is not None or output is not Output.table else _TABLE_ROWS + 1
    query = Query(errors=errors, with_system_columns=system_columns or errors, limit=shown, ordered=True)
    when: dict[str, Any] = {"as_of_ms": as_of, "tick": tick, "not_live": refuse if require_live else tell_not_live}
    with (
        context.open_catalog(chosen) as catalog,
        open_table(catalog, chosen.warehouse, name, query, jars=chosen.jars, **when) as found,
    ):
        rows, columns = rows_of(found), found.schema.names
        if limit is None and output is Output.table:
            rows = first_rows(rows)
        if errors and output is Output.table:
            columns = sorted(columns, key=lambda column: column != "error")
            rows = ({key: _readable(value) for key, value in row.items()} for row in rows)
        print_rows(columns, rows, output)


def tell_not_live(tables: Sequence[Standing]) -> None:
    """On stderr: tables that are not live, of which is printed what is there."""
    from airflow_provider_mzshare.control.lifecycle.liveness import remark

    for table in tables:
        typer.echo(f"note: {visible(remark(table))}", err=True)


def rows_of(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    from airflow_provider_mzshare.storage.collections.values import python_rows

    for batch in batches:
        for start in range(0, batch.num_rows, _CHUNK):
            yield from python_rows(batch.slice(start, _CHUNK))


def first_rows(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """As many as the output as a table has, and a word about the rest."""
    for number, row in enumerate(rows):
        if number == _TABLE_ROWS:
            typer.echo(
                f"only the first {_TABLE_ROWS} rows are shown: --limit N shows more, --output csv shows all", err=True
            )
            return
        yield row


def _readable(value: Any) -> Any:
    """Bytes that are valid text, as text: so people see what is wrong with a record."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value
