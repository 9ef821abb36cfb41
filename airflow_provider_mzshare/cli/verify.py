"""The command ``verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_record
from airflow_provider_mzshare.cli.wait import display

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.lifecycle.verified import Verified

EXIT_UNVERIFIABLE = 3


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    name: Annotated[str, typer.Argument(help="A table.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Compare from the table's start on, not only what its last backfill wrote.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Prove a table against its source, record by record, or key by key where records change rows.

    The command reads the source's range again and compares: every record must be in the table exactly once, and equal;
    or every key must have the row that its records say. Otherwise it fails, and names the first such offset or key.
    Exit code 3: the source no longer has all of the range.
    """
    from airflow_provider_mzshare.control.catalog.objects.lookup import find_table
    from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
    from airflow_provider_mzshare.control.lifecycle.verification import verify_table

    asked, chosen = typed_name(name), context.settings()
    with context.open_catalog(chosen) as catalog, display() as report:
        with catalog.read() as session:
            table = find_table(session, (asked.schema, asked.name))
        connections = context.connections()
        verified = verify_table(catalog, connections, chosen.warehouse, table, everything=everything, report=report)
    print_record(verified.to_json(), output, _sentence(verified))
    if verified.verdict == "unverifiable":
        raise typer.Exit(EXIT_UNVERIFIABLE)


def _sentence(verified: Verified) -> str:
    if verified.verdict == "unverifiable":
        return f"{verified.table} is unverifiable: {verified.reason}"
    ranges = ", ".join(f"{each.partition}:{each.lower}-{each.upper}" for each in verified.partitions)
    compared = verified.rows + verified.errors
    if verified.key:
        compared = sum(each.upper - each.lower for each in verified.partitions)
        what = f"the rows of {verified.rows} keys and {verified.errors} errors"
    else:
        what = f"{verified.rows} rows and {verified.errors} errors"
    rate = compared / max(verified.seconds, 0.001)
    return (
        f"{verified.table} is exact at tick {verified.tick}: {what} match the upstream, each exactly once "
        f"({ranges or 'nothing'}; {verified.seconds:.1f} s, {rate:,.0f}/s)"
    )
