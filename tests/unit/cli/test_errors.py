"""What becomes of an error: one line, an exit code, and never a traceback unless asked for."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from airflow_provider_mzshare.cli.main import run
from airflow_provider_mzshare.errors import (
    BadSetting,
    CatalogUnreachable,
    JobFailed,
    MzShareError,
    StatementError,
    WaitTimeout,
)

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MZSHARE_DEBUG", raising=False)
    return tmp_path / "home"


def raising(error: BaseException) -> Callable[..., Any]:
    def command(**_: object) -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (StatementError("expected TOPIC", line=1, column=9), 1, "line 1, column 9: expected TOPIC."),
        (JobFailed("it\n  broke.", hint="mzshare logs s"), 1, "it broke. Try: mzshare logs s"),
        (WaitTimeout("t is not live after 3 s"), 1, "t is not live after 3 s."),
        (CatalogUnreachable("the catalog is away"), 1, "the catalog is away."),
        (
            BadSetting("MZSHARE_MASTER", "yarn", "local[N]"),
            2,
            "MZSHARE_MASTER cannot be 'yarn': it takes local[N]. Try: unset MZSHARE_MASTER, or correct it",
        ),
        (
            PermissionError(13, "Permission denied", "/somewhere/x"),
            1,
            "/somewhere/x: Permission denied. Try: check the file's path and permissions",
        ),
    ],
)
def test_known_errors_are_one_line_with_the_next_step(
    error: BaseException, code: int, line: str, capsys: Captured
) -> None:
    assert run([], raising(error)) == code
    captured = capsys.readouterr()
    assert captured.err == f"error: {line}\n"
    assert captured.out == ""


def test_an_unforeseen_error_is_one_line_and_a_private_report(home: Path, capsys: Captured) -> None:
    assert run([], raising(ZeroDivisionError("by zero\nand more"))) == 1
    (line,) = capsys.readouterr().err.splitlines()
    (report,) = (home / "logs").iterdir()
    told = f"This error is unexpected; the details are in {report}. Try: mzshare doctor"
    assert line == f"error: ZeroDivisionError: by zero. {told}"
    assert "Traceback" in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_where_no_report_can_be_written_the_line_says_how_to_see_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path / "file"))
    assert run([], raising(ZeroDivisionError("by zero"))) == 1
    assert "MZSHARE_DEBUG=1 shows the details" in capsys.readouterr().err


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("MZSHARE_DEBUG", "1")
    assert run([], raising(JobFailed("it broke"))) == 1
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.endswith("error: it broke.\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_an_interrupt_is_130_without_a_word(error: BaseException, capsys: Captured) -> None:
    assert run([], raising(error)) == 130
    assert capsys.readouterr().err == ""


def test_control_characters_of_a_message_do_not_reach_the_terminal(capsys: Captured) -> None:
    assert run([], raising(MzShareError("bad \x1b[31mname"))) == 1
    assert capsys.readouterr().err == "error: bad \\x1b[31mname.\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["status", "--nothing"], "No such option: --nothing"),
        (["read"], "Missing argument 'name'"),
        (["read", "t", "--as-of", str(2**63)], "Invalid value for '--as-of': it takes a whole number of 64 bits"),
        (["read", "t", "--tick", str(-(2**63) - 1)], "'--tick': it takes a whole number of 64 bits"),
        (["read", "t", "--limit", "9" * 30], "'--limit': it takes a whole number of 64 bits"),
        (["changes", "t", "--as-of", "9" * 30], "'--as-of': it takes a whole number of 64 bits"),
        (["changes", "t", "--up-to", "9" * 30], "'--up-to': it takes a whole number of 64 bits"),
        (["changes", "t", "--limit", "9" * 30], "'--limit': it takes a whole number of 64 bits"),
        (["changes", "t", "-f", "--timeout", "inf"], "'--timeout': it takes a number of seconds"),
        (["wait", "t", "--timeout", "1e300"], "'--timeout': it takes a number of seconds, from 0 to 9223372036"),
        (["wait", "t", "--max-lag", "9" * 30], "'--max-lag': it takes a whole number of 64 bits"),
        (["logs", "t", "--tail", "9" * 30], "'--tail' / '-n': it takes a whole number of 64 bits"),
        (["reconcile", "--loop", "1e300"], "'--loop': it takes a number of seconds"),
        (["stop", "s", "--grace", "inf"], "'--grace': it takes a number of seconds"),
        (["retire", "t", "--grace", "inf"], "'--grace': it takes a number of seconds"),
        (["status", "-o", "xml"], "'xml' is not one of"),
        (["wait", "t", "--for", "ever"], "'ever' is not one of"),
        (["wait", "t", "--timeout", "-1"], "--timeout"),
        (["read", "t", "--as-of", "1", "--tick", "1"], "give --as-of or --tick, not both"),
        (["jars", "--group", "nope"], "there is no jar group 'nope'; there are: spark, kafka"),
        (["sql"], "give either the statements or -f FILE"),
        (["sql", "SHOW TABLES", "-f", "x"], "give either the statements or -f FILE"),
    ],
)
def test_wrong_use_is_2_and_names_the_help_to_read(argv: list[str], words: str, capsys: Captured) -> None:
    assert run(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert words in line
    assert "Try: mzshare" in line
    assert line.endswith("--help")
    assert "Value error" not in line


@pytest.mark.parametrize(("argv", "command"), [([], "status"), (["catalog"], "upgrade")])
def test_a_command_without_what_it_needs_prints_its_help_by_lines(
    argv: list[str], command: str, capsys: Captured
) -> None:
    assert run(argv) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(" ".join(["Usage: mzshare", *argv]))
    assert any(line.split()[:1] == [command] for line in lines)
    assert not any("error:" in line for line in lines)


def test_help_and_version_are_well(capsys: Captured) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("mzshare ")
    for argv in (["--help"], ["sql", "-h"], ["catalog", "upgrade", "--help"]):
        assert run(argv) == 0
        assert "Usage: mzshare" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        "sql", "status", "reconcile", "start", "stop", "wait", "read", "logs", "jars", "doctor", "catalog upgrade",
        "catalog repair",
    ],
)  # fmt: skip
def test_every_command_can_answer_as_table_json_or_csv(command: str, capsys: Captured) -> None:
    assert run([*command.split(), "--help"]) == 0
    assert "--output" in capsys.readouterr().out
