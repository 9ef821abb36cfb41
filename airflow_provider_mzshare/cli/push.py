"""The command ``push``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from airflow_provider_mzshare.cli import context
from airflow_provider_mzshare.cli.render import Output, OutputOption, print_record, visible

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.lifecycle.pushing import Pushed
    from airflow_provider_mzshare.storage.journal.lines import Readable

_PROGRESS_SECONDS = 5.0
_BATCH = "An id for these records: sent again under it, they are acknowledged, and not taken twice."


class Lines(str, Enum):
    lines = "lines"
    jsonl = "jsonl"


def register(app: typer.Typer) -> None:
    app.command("push")(push)


def push(
    source: Annotated[str, typer.Argument(help="A source that was made FROM JOURNAL.")],
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="One record a line; - is standard input.")],
    line_format: Annotated[
        Lines,
        typer.Option("--format", help="What a line is: a value, or JSON with key, value, headers, timestamp."),
    ] = Lines.lines,
    batch: Annotated[str | None, typer.Option("--batch", metavar="ID", help=_BATCH)] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Default: the first that is free.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, metavar="S", help="How long to wait for a partition.")
    ] = 30.0,
    output: OutputOption = Output.table,
) -> None:
    """Push records into a source. They are durable, and each counts once, when the command says so."""
    from airflow_provider_mzshare.control.lifecycle.pushing import open_pusher
    from airflow_provider_mzshare.storage.journal.lines import messages_of_file

    chosen, told = context.settings(), _Told()
    with _opened(file) as opened, context.open_catalog(chosen) as catalog:
        try:
            with open_pusher(catalog, chosen, source, partition=partition, wait=timeout) as pusher:
                messages = messages_of_file(opened, line_format.value)
                pushed = pusher.push_messages(messages, batch=batch, report=told)
        except KeyboardInterrupt:
            typer.echo(f"interrupted: {told.text} acknowledged", err=True)
            raise
    _print(source, pushed, output)


@contextmanager
def _opened(file: str) -> Iterator[Readable]:
    if file == "-":
        yield cast("Readable", sys.stdin.buffer)
        return
    with Path(file).open("rb") as opened:
        yield opened


class _Told:
    """Says on stderr how far a push is that takes long."""

    def __init__(self) -> None:
        self._acknowledged = 0
        self._say_at: float | None = None

    def __call__(self, acknowledged: int) -> None:
        self._acknowledged = acknowledged
        now = time.monotonic()
        if self._say_at is None:
            self._say_at = now + _PROGRESS_SECONDS
        elif now >= self._say_at:
            self._say_at = now + _PROGRESS_SECONDS
            typer.echo(f"{self.text} acknowledged so far", err=True)

    @property
    def text(self) -> str:
        return "1 record is" if self._acknowledged == 1 else f"{self._acknowledged} records are"


def _print(source: str, pushed: Pushed, output: Output) -> None:
    where = "; ".join(f"partition {one.partition}, offsets {one.first} to {one.end - 1}" for one in pushed.ranges)
    before = f" ({pushed.repeated} of them had been taken before)" if pushed.repeated else ""
    records = "1 record" if pushed.messages == 1 else f"{pushed.messages} records"
    text = f"acknowledged: {records}{before}{f': {where}' if where else ''}"
    record = {
        "source": source,
        "messages": pushed.messages,
        "repeated": pushed.repeated,
        "ranges": [asdict(one) for one in pushed.ranges],
    }
    try:
        print_record(record, output, visible(text))
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads the answer; that the records count is to be known all the same.
        typer.echo(visible(text), err=True)
        raise
