"""Commands about what runs: ``reconcile``, ``start``, ``stop``, ``retire``."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context, numbers
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_rows, visible
from airflow_provider_mzshare.errors import JobFailed, TransientError

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.catalog.objects.items import Desired
    from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus
    from airflow_provider_mzshare.control.supervision.reconciler import Outcome, Reconciler

_COLUMNS = ("subject", "action", "ok", "detail", "hint")


def register(app: typer.Typer) -> None:
    for command in (reconcile, start, stop, retire):
        app.command()(command)


def reconcile(
    loop: Annotated[
        float | None,
        typer.Option(
            "--loop",
            min=0.1,
            metavar="SECONDS",
            callback=numbers.seconds,
            help="Repeat, with a pause of SECONDS after each run.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and do nothing.")] = False,
    output: OutputOption = Output.table,
) -> None:
    """Start the apps that should run, stop those that should not, and tidy up."""
    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        reconciler = context.wiring(catalog, chosen).reconciler()
        if dry_run:
            plan = [
                {"subject": a.subject, "action": a.verb, "ok": True, "detail": a.why, "hint": ""}
                for a in reconciler.plan()
            ]
            _print(plan, output)
            return
        if loop is not None:
            _reconcile_for_ever(reconciler, loop)
        outcomes = reconciler.run_patiently()
    _report(outcomes, output)


def _reconcile_for_ever(reconciler: Reconciler, seconds: float) -> None:
    """Reconcile again and again, with one line on stdout for each action. A catalog that is away is tried again."""
    interrupts = _remember_interrupts()
    while not interrupts:
        try:
            for outcome in reconciler.run():
                text = f"{outcome.action} {outcome.subject}: {outcome.detail}"
                typer.echo(visible(text if outcome.ok else f"error: {text}"), err=not outcome.ok)
        except TransientError as error:
            typer.echo(f"error: {visible(error.line)}", err=True)
        sys.stdout.flush()
        time.sleep(seconds)
    raise KeyboardInterrupt


def _remember_interrupts() -> list[int]:
    """Python ignores an interrupt that comes while it runs a finalizer: so it is remembered for the loop's next turn.

    A list and no Event: setting an Event takes a lock, which the interrupted code may hold.
    """
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    return interrupts


def start(
    source: Annotated[str, typer.Argument(help="A source.")],
    output: OutputOption = Output.table,
) -> None:
    """Keep a source's ingestion app and its backfills running, from now on."""
    _change(source, "running", output)


def stop(
    source: Annotated[str, typer.Argument(help="A source.")],
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            min=0,
            metavar="S",
            callback=numbers.seconds,
            help="Seconds that the current tick may take; after that the app is forced to end.",
        ),
    ] = 60,
    output: OutputOption = Output.table,
) -> None:
    """Let a source's ingestion app and its backfills end after their current ticks."""
    _change(source, "stopped", output, grace)


def retire(
    tables: Annotated[list[str], typer.Argument(help="Tables that a backfill brings up.", metavar="TABLE…")],
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            min=0,
            metavar="S",
            callback=numbers.seconds,
            help="Seconds that the current ticks may take; after that the app is forced to end.",
        ),
    ] = 60,
    output: OutputOption = Output.table,
) -> None:
    """End the backfills of tables for good.

    A table that is not live yet becomes stalled: it keeps its rows, and can be resumed. A new generation that is not
    live yet is given up. Tables that were created together share a backfill, so it ends for all of them. A backfill
    that was merged with others goes on for their tables. A queued backfill leaves the queue, and the next one starts.
    """
    from airflow_provider_mzshare.control.supervision.retiring import retire_backfills

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        found = [context.find_table(catalog, name).id for name in tables]
        outcomes = retire_backfills(catalog, context.wiring(catalog, chosen).reconciler(stop_seconds=grace), found)
    if output is Output.table and not outcomes:
        typer.echo("nothing to do: none of these tables ever had a backfill")
    _report(outcomes, output)


def _change(name: str, desired: Desired, output: Output, grace: float = 60) -> None:
    from airflow_provider_mzshare.control.catalog.objects.items import set_desired

    chosen = context.settings()
    with context.open_catalog(chosen) as catalog:
        source = context.find_source(catalog, name)
        with catalog.write() as session:
            set_desired(session, source.id, desired)
        outcomes = context.wiring(catalog, chosen).reconciler(stop_seconds=grace).run(only=source.id, at_once=True)
        status, _ = context.wiring(catalog, chosen).status_reader().source(source)
    if output is Output.table and not [o for o in outcomes if o.action in ("start", "stop", "queue")]:
        _tell_verdict(status, desired)
    _report(outcomes, output)
    if desired == "running" and status.health == "stalled":
        raise JobFailed(f"source {status.name} is stalled: {status.reason}", hint=status.hint)


def _tell_verdict(status: SourceStatus, desired: Desired) -> None:
    """Nothing was to be done: the source's status says why."""
    if desired == "running" and status.health == "stalled":
        return
    why = f": {status.reason.rstrip('.')}" if status.reason else ""
    next_step = f". Try: {status.hint}" if status.hint and desired == "running" else ""
    typer.echo(visible(f"nothing to do, source {status.name} is {status.health}{why}{next_step}"))


def _report(outcomes: Sequence[Outcome], output: Output) -> None:
    _print([vars(outcome) for outcome in outcomes], output)
    if bad := [outcome for outcome in outcomes if not outcome.ok]:
        raise JobFailed(f"{bad[0].action} {bad[0].subject}: {bad[0].detail}", hint=bad[0].hint)


def _print(rows: list[dict[str, Any]], output: Output) -> None:
    if output is not Output.table:
        print_rows(_COLUMNS, rows, output)
        return
    for row in rows:
        if row["ok"]:
            typer.echo(visible(f"{row['action']} {row['subject']}: {row['detail']}"))
