"""The command ``sql``: statements in, answers out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.context import StartOption
from airflow_provider_mzshare.cli.render import Output, OutputOption, plain, print_rows, visible
from airflow_provider_mzshare.errors import MzShareError

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.catalog import Catalog
    from airflow_provider_mzshare.control.lifecycle.table_plans import TablePlan
    from airflow_provider_mzshare.control.statements.answers import Result
    from airflow_provider_mzshare.settings import Settings

_MESSAGE_COLUMNS = ("command", "name", "id", "message")


def register(app: typer.Typer) -> None:
    app.command("sql")(sql)


def sql(
    statements: Annotated[str | None, typer.Argument(help="SQL statements, separated by semicolons.")] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read the statements from a file; - is standard input."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, write nothing, print the plan.")
    ] = False,
    start: StartOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Run SQL statements.

    CREATE, ALTER and DROP of sources, tables, views and schemas, COMMENT ON, SHOW, EXPLAIN, SELECT on the catalog's
    relations, BEGIN … COMMIT. The command also starts the backfills that new tables need, if the app of their source
    runs on this machine.
    """
    text = _text(statements, file)
    from airflow_provider_mzshare.control.statements.run import run_script

    printer, chosen = _Printer(output, plans=dry_run), context.settings()
    try:
        with context.open_catalog(chosen, create=True, keep=not dry_run) as catalog:
            for result in run_script(catalog, text, context.connections(), dry_run=dry_run):
                printer.add(result)
            if printer.arriving and not dry_run:
                _bring_up(catalog, chosen, printer.arriving, start)
    finally:
        # Statements before one that failed have been carried out: their results are printed in any case.
        printer.close()


def _bring_up(catalog: Catalog, chosen: Settings, item_ids: list[str], start: bool | None) -> None:
    """Reported on stderr. The statements have succeeded: a start that fails is an error only with ``--start``."""
    from airflow_provider_mzshare.control.supervision.backfill_starter import tables_of

    with catalog.read() as session:
        tables = tables_of(session, item_ids)
    try:
        for started in context.wiring(catalog, chosen).backfill_starter(start).bring_up(tables):
            typer.echo(visible(started.told), err=True)
    except MzShareError as error:
        if start:
            raise
        typer.echo(f"note: the backfill was not started: {visible(error.line)}", err=True)


def _text(statements: str | None, file: str | None) -> str:
    if (statements is None) == (file is None):
        raise typer.BadParameter("give either the statements or -f FILE")
    if file is None:
        return statements or ""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8 text") from error


class _Printer:
    """Prints results as they come; JSON becomes one list. Plans are printed at the end, each once."""

    def __init__(self, output: Output, *, plans: bool) -> None:
        self._output, self._count = output, 0
        self._with_plans = plans
        self._plans: list[TablePlan] = []
        self.arriving: list[str] = []
        """Ids of tables and sources that were created or resumed, and may need a backfill."""

    def add(self, result: Result) -> None:
        if result.plan is not None and result.plan not in self._plans:
            self._plans.append(result.plan)
        if result.id and result.plan and result.plan.backfilled and result.command != "EXPLAIN":
            self.arriving.append(result.id)
        if self._output is Output.json:
            record = json.dumps(self._record(result), ensure_ascii=False)
            typer.echo(f"{',' if self._count else '['}\n  {record}", nl=False)
        elif result.rows is not None:
            self._separate()
            self._rows(result)
        elif self._output is Output.csv:
            self._separate()
            print_rows(_MESSAGE_COLUMNS, [{name: getattr(result, name) for name in _MESSAGE_COLUMNS}], self._output)
        else:
            typer.echo(result.message)
        self._count += 1

    def _record(self, result: Result) -> dict[str, Any]:
        rows = None if result.rows is None else [{c: plain(row[c]) for c in result.columns} for row in result.rows]
        record = {**{name: getattr(result, name) for name in _MESSAGE_COLUMNS}, "rows": rows}
        return {**record, "plan": result.plan.to_json()} if self._with_plans and result.plan else record

    def _rows(self, result: Result) -> None:
        """SHOW CREATE is there to be read and run again: its text is printed as it is."""
        if self._output is Output.table and result.command == "SHOW CREATE":
            typer.echo("\n".join(str(row["create_sql"]) for row in result.rows or ()))
        else:
            print_rows(result.columns, result.rows or (), self._output)

    def _separate(self) -> None:
        if self._count:
            typer.echo("")

    def close(self) -> None:
        if self._output is Output.json:
            typer.echo("\n]" if self._count else "[]")
        elif self._output is Output.table and self._with_plans and self._plans:
            from airflow_provider_mzshare.control.lifecycle.plan_text import plan_text

            typer.echo("\n" + "\n".join(plan_text(plan) for plan in self._plans))
