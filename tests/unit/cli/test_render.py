"""Answers as a table, JSON or CSV: stable for programs, harmless for terminals."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timezone
from decimal import Decimal

import pytest

from airflow_provider_mzshare.cli.render import Output, plain, print_record, print_rows, uses_colour, visible

ROWS = [
    {"n": 1, "text": 'a,b\n"c"', "raw": b"\x00\xff", "gone": None, "yes": True},
    {"n": 22, "text": "ü", "raw": b"", "gone": None, "yes": False},
]
COLUMNS = ("n", "text", "raw", "gone", "yes")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(output: Output, columns: tuple[str, ...] = COLUMNS, rows: list[dict[str, object]] = ROWS) -> str:  # type: ignore[assignment]
    file = io.StringIO()
    assert print_rows(columns, iter(rows), output, file) == len(rows)
    return file.getvalue()


def test_json_is_one_document_with_the_keys_in_order() -> None:
    value = json.loads(printed(Output.json))
    assert value == [
        {"n": 1, "text": 'a,b\n"c"', "raw": "\\x00ff", "gone": None, "yes": True},
        {"n": 22, "text": "ü", "raw": "\\x", "gone": None, "yes": False},
    ]
    assert list(value[0]) == list(COLUMNS)


def test_json_of_nothing_is_an_empty_list() -> None:
    assert json.loads(printed(Output.json, rows=[])) == []


def test_csv_has_a_header_and_survives_a_csv_reader() -> None:
    lines = list(csv.reader(io.StringIO(printed(Output.csv))))
    assert lines == [list(COLUMNS), ["1", 'a,b\n"c"', "\\x00ff", "", "true"], ["22", "ü", "\\x", "", "false"]]
    assert printed(Output.csv, rows=[]) == "n,text,raw,gone,yes\n"


def test_a_table_off_a_terminal_is_plain_text_and_never_broken_into_lines() -> None:
    text = printed(Output.table, ("a", "b"), [{"a": "x" * 300, "b": "end"}])
    assert "\x1b" not in text
    assert any(line.rstrip().endswith("end") and "x" * 300 in line for line in text.splitlines())
    assert text.isascii()


def test_numbers_stand_on_the_right() -> None:
    lines = printed(Output.table, ("n", "t"), [{"n": 1, "t": "a"}, {"n": 1000, "t": "b"}]).splitlines()
    assert "   1 | a" in lines[2]


def test_data_cannot_steer_the_terminal() -> None:
    assert visible("a\x1b[31mb\r\n\u202e") == "a\\x1b[31mb\\r\\n\\u202e"
    text = printed(Output.table, ("t",), [{"t": "\x1b]0;owned\x07 [red]x[/red]"}])
    assert "\x1b" not in text
    assert "[red]x[/red]" in text, "data is not markup"


def test_colours_only_on_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert uses_colour(Terminal())
    assert not uses_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not uses_colour(Terminal())


def test_values_keep_everything_in_json() -> None:
    assert plain(Decimal("1.10")) == "1.10"
    assert plain(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)) == "2026-01-02T03:04:05.000006+00:00"
    assert plain(float("inf")) == "inf"
    assert plain({"0": (1, None)}) == {"0": [1, None]}
    assert plain(2**60) == 2**60


def test_a_record_is_a_sentence_for_people_and_fields_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"source": "public.s", "state": "running", "job": None}
    print_record(record, Output.table, "source public.s runs")
    print_record(record, Output.json, "source public.s runs")
    print_record(record, Output.csv, "source public.s runs")
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first == "source public.s runs"
    assert json.loads(second) == record
    assert rest == ["source,state,job", "public.s,running,"]
