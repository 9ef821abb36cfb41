"""Puts rows and values on the terminal, as a table, JSON or CSV; knows nothing about where they come from."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

Row = Mapping[str, Any]


class Output(str, Enum):
    table = "table"
    json = "json"
    csv = "csv"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.", show_default=True)]


def print_rows(columns: Sequence[str], rows: Iterable[Row], output: Output, file: TextIO | None = None) -> int:
    """Print rows as they come, except as a table, which needs all of them first. Returns how many there were."""
    file = file or sys.stdout
    if output is Output.json:
        return _print_json(columns, rows, file)
    if output is Output.csv:
        return _print_csv(columns, rows, file)
    return _print_table(columns, rows, file)


def print_lines(columns: Sequence[str], batches: Iterable[Iterable[Row]], output: Output) -> None:
    """Print rows for ever, each at once: for people in columns that grow with what comes, JSON an object a line."""
    file = sys.stdout
    writer = csv.writer(file, lineterminator="\n")
    if output is Output.csv:
        writer.writerow(columns)
    widths = [len(name) for name in columns]
    if output is Output.table:
        file.write(_padded(columns, widths))
    file.flush()
    for batch in batches:
        for row in batch:
            if output is Output.json:
                file.write(json.dumps({name: plain(row[name]) for name in columns}, ensure_ascii=False) + "\n")
            elif output is Output.csv:
                writer.writerow([_cell(row[name]) for name in columns])
            else:
                cells = [visible(_cell(row[name])) for name in columns]
                widths = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
                file.write(_padded(cells, widths))
        file.flush()


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() + "\n"


def print_record(record: Row, output: Output, text: str) -> None:
    """One answer: its ``text`` for people, all of its fields for programs."""
    if output is Output.table:
        typer.echo(text)
    elif output is Output.json:
        typer.echo(json.dumps({key: plain(value) for key, value in record.items()}, ensure_ascii=False))
    else:
        _print_csv(tuple(record), [record], sys.stdout)


def _print_json(columns: Sequence[str], rows: Iterable[Row], file: TextIO) -> int:
    count = 0
    for row in rows:
        line = json.dumps({name: plain(row[name]) for name in columns}, ensure_ascii=False)
        file.write(f"{',' if count else '['}\n  {line}")
        count += 1
    file.write("\n]\n" if count else "[]\n")
    return count


def _print_csv(columns: Sequence[str], rows: Iterable[Row], file: TextIO) -> int:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
        count += 1
    return count


def _print_table(columns: Sequence[str], rows: Iterable[Row], file: TextIO) -> int:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if uses_colour(file) else box.ASCII2, show_edge=False, pad_edge=False)
    kept = [[row[name] for name in columns] for row in rows]
    for number, name in enumerate(columns):
        numeric = bool(kept) and all(isinstance(row[number], (int, float, Decimal, type(None))) for row in kept)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in kept:
        table.add_row(*(Text(visible(_cell(value))) for value in row))
    width = sum(_width(cells) for cells in zip(columns, *kept, strict=True))
    console(file, columns=width).print(table)
    return len(kept)


def _width(column: Sequence[Any]) -> int:
    from rich.cells import cell_len

    return max(cell_len(visible(_cell(value))) for value in column) + 3


def console(file: TextIO, *, columns: int = 0) -> Any:
    """A rich console. Without a terminal it has no colours, and is so wide that no line is broken."""
    from rich.console import Console

    terminal = file.isatty()
    return Console(
        file=file,
        color_system="auto" if uses_colour(file) else None,
        force_terminal=terminal,
        highlight=False,
        emoji=False,
        markup=False,
        width=None if terminal else max(80, columns),
    )


def uses_colour(file: TextIO) -> bool:
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain(value: Any) -> Any:
    """A value as JSON can hold it without losing anything."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return "\\x" + bytes(value).hex()
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (Decimal, Path)):
        return str(value)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(plain(value), ensure_ascii=False)
    return _text(value)


def visible(text: str) -> str:
    """Data may hold anything: control characters must not reach a terminal as such."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
