"""The command ``wait``, with its progress display."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airflow_provider_mzshare.cli import context, numbers
from airflow_provider_mzshare.cli.context import StartOption
from airflow_provider_mzshare.cli.render import Output, OutputOption, console, print_record

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.lifecycle.progress import Progress

_LINE_SECONDS = 5.0
_MAX_LAG = "Let a table be cut over when it is at most this far behind."

TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", min=0, metavar="S", callback=numbers.seconds, help="Give up after S seconds; 0: never."),
]
MaxLagOption = Annotated[int, typer.Option("--max-lag", min=0, metavar="TICKS", callback=numbers.whole, help=_MAX_LAG)]


class Goal(str, Enum):
    live = "live"
    caught_up = "caught-up"


def register(app: typer.Typer) -> None:
    app.command("wait")(wait)


def wait(
    name: Annotated[str, typer.Argument(help="A table, or a source: that means all its tables.")],
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.live,
    timeout: TimeoutOption = 300,
    max_lag: MaxLagOption = 1,
    start: StartOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Wait until tables are live or have caught up.

    Live: the table has a first tick and, if a backfill brings it up, is cut over. Caught up: the table has everything
    that was upstream when the wait began. The command also starts backfills that nobody has started, if the source's
    app runs on this machine.
    """
    began = time.monotonic()
    chosen = context.settings()
    with context.open_catalog(chosen) as catalog, display() as report:
        item = context.find_item(catalog, name)
        waiter = context.wiring(catalog, chosen).waiter(item, goal.value, start=start, max_lag=max_lag, report=report)
        source, tables = waiter.wait(timeout or None)
    record = {
        "name": name,
        "reached": goal.value,
        "seconds": round(time.monotonic() - began, 1),
        "tables": [table.name for table in tables],
        "rows": sum(table.rows for table in tables),
        "errors": sum(table.errors for table in tables),
        "tick": source.tick,
        "upper": min(table.upper or 0 for table in tables),
    }
    many = f"{len(tables)} table{'s' * (len(tables) != 1)}, " if item.id == source.id else ""
    print_record(record, output, f"{name} is {goal.value}: {many}{record['rows']} rows, tick {source.tick}")


@contextmanager
def display() -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, a line now and then elsewhere; always on stderr, beside the answer."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Any) -> None:
            bar.update(task, completed=progress.done, total=progress.total or None, description=described(progress))

        yield show


class _Lines:
    """At most one line in ``_LINE_SECONDS``, and never the same line twice in a row."""

    def __init__(self) -> None:
        self._next, self._last = 0.0, ""

    def show(self, progress: Progress) -> None:
        text = described(progress)
        line = f"{progress.done} of {progress.total} offsets, {text}" if progress.total else text
        if time.monotonic() < self._next or line == self._last:
            return
        self._next, self._last = time.monotonic() + _LINE_SECONDS, line
        typer.echo(line, err=True)


def described(progress: Progress) -> str:
    """The progress in words, with the next step if nothing happens by itself."""
    return f"{describe(progress)}{f'. Try: {progress.hint}' if progress.hint else ''}"


def describe(progress: Progress) -> str:
    if not progress.total or not progress.done:
        return progress.note
    if not progress.rate:
        return progress.note
    if progress.done >= progress.total:
        return f"{progress.rate:,.0f}/s, {progress.note}"
    left = progress.seconds_left
    return f"{progress.rate:,.0f}/s, {'?' if left is None else f'{left:.0f} s'} left, {progress.note}"
