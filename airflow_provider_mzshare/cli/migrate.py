"""The command ``migrate``: legacy sources become sources with tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.upgrade.plan import Action, Plan
    from airflow_provider_mzshare.control.upgrade.report import Report

_COLUMNS = ("source", "state", "object", "id", "change", "dbt", "terraform")


def register(app: typer.Typer) -> None:
    app.command()(migrate)


def migrate(
    source: Annotated[str | None, typer.Argument(help="This source, by its name or id.", show_default=False)] = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", metavar="P", help="Those whose name matches, as 'shop.*'.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All there are.")] = False,
    apply: Annotated[bool, typer.Option("--apply/--dry-run", help="Do it, or only say what would be done.")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="Take a migration back.")] = False,
    finalize: Annotated[
        bool, typer.Option("--finalize", help="End a migration: legacy progress names go, and there is no way back.")
    ] = False,
    stop_on_first_failure: Annotated[
        bool,
        typer.Option(
            "--stop-on-first-failure/--no-stop-on-first-failure", help="Whether a failure keeps the rest from its turn."
        ),
    ] = True,
    output: OutputOption = Output.table,
) -> None:
    """Move legacy sources to tables: definitions change, data, history and running apps do not."""
    if (source is not None) + (pattern is not None) + everything != 1:
        raise typer.BadParameter("give one source, or --pattern P, or --all")
    if rollback and finalize:
        raise typer.BadParameter("give --rollback or --finalize, not both")
    from airflow_provider_mzshare.control.upgrade.choosing import Wanted
    from airflow_provider_mzshare.control.upgrade.executor import Run, run

    action: Action = "rollback" if rollback else "finalize" if finalize else "migrate"
    plans: list[Plan] = []
    how = Run(action, apply, stop_on_first_failure=stop_on_first_failure, plans=plans.append)
    with context.open_catalog(context.settings()) as catalog:
        report = run(catalog, Wanted(source, pattern, everything), how)
    _print(report, plans, output)
    if report.failed:
        raise typer.Exit(1)


def _print(report: Report, plans: list[Plan], output: Output) -> None:
    if output is Output.json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
        return
    if output is Output.csv:
        print_rows(_COLUMNS, _rows(report), output)
        return
    from airflow_provider_mzshare.control.upgrade.plan_sql import plan_text

    for plan in plans if report.dry_run else ():
        typer.echo(plan_text(plan) + "\n")
    print_rows(_COLUMNS, _rows(report), output)
    for one in report.sources:
        if one.error:
            typer.echo(f"{one.source}: {one.error}")
    typer.echo(f"next: {report.next}")


def _rows(report: Report) -> list[dict[str, Any]]:
    """One row for each object that changes; a source without such objects has one row."""
    rows: list[dict[str, Any]] = []
    for one in report.sources:
        objects = [o for o in one.objects if o.change != "none"]
        told = {"source": one.source, "state": one.state}
        rows += [
            {
                **told,
                "object": f"{o.kind} {o.name}",
                "id": o.id,
                "change": o.change,
                "dbt": o.dbt,
                "terraform": o.terraform,
            }
            for o in objects
        ]
        if not objects:
            note = one.error or "; ".join(one.notes)
            rows.append({**told, "object": one.source, "id": one.id, "change": note, "dbt": "", "terraform": ""})
    return rows
