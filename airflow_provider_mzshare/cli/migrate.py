"""The command ``migrate``: old-style sources become sources with tables."""

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
    source: Annotated[str | None, typer.Argument(help="The source, by its name or id.", show_default=False)] = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", metavar="P", help="All sources whose name matches, such as 'shop.*'.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sources.")] = False,
    apply: Annotated[bool, typer.Option("--apply/--dry-run", help="Carry the plan out, or only print it.")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="Undo a migration.")] = False,
    finalize: Annotated[
        bool,
        typer.Option(
            "--finalize", help="End a migration: drop the old-style progress names. After this it cannot be undone."
        ),
    ] = False,
    stop_on_first_failure: Annotated[
        bool,
        typer.Option(
            "--stop-on-first-failure/--no-stop-on-first-failure",
            help="Stop at the first source that fails, or go on with the others.",
        ),
    ] = True,
    output: OutputOption = Output.table,
) -> None:
    """Turn old-style sources into sources with tables. Only definitions change, not data, history or running apps."""
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
