"""The ``mzshare`` command: its commands, and what becomes of an error. An error is one line, never a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from airflow_provider_mzshare import __version__
from airflow_provider_mzshare.cli import (
    apps,
    catalog,
    changes,
    check,
    doctor,
    holds,
    jars,
    logs,
    maintain,
    migrate,
    path,
    push,
    read,
    references,
    sql,
    status,
    verify,
    wait,
)
from airflow_provider_mzshare.cli.render import visible
from airflow_provider_mzshare.errors import BadSetting, MzShareError
from airflow_provider_mzshare.folders import PRIVATE, make_folder
from airflow_provider_mzshare.settings import Settings

EXIT_FAILED, EXIT_WRONG_USE, EXIT_INTERRUPTED = 1, 2, 130

_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""Click's UsageError, wherever the installed typer has its click."""
_CLICK_ERROR: Any = _USAGE_ERROR.__bases__[0]

app = typer.Typer(
    name="mzshare",
    help="One shared streaming read feeds any number of exact Delta tables.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    sql, status, path, references, apps, logs, wait, read, changes, push, verify, check, maintain, holds, migrate, jars,
    catalog, doctor,
)  # fmt: skip
for module in COMMANDS:
    module.register(app)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mzshare {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(argv: Sequence[str] | None = None) -> None:
    """The console script: run a command and leave with its exit code."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str], command: Callable[..., Any] | None = None) -> int:
    """Run one command line; 0 well, 1 failed, 2 wrong use, 130 interrupted."""
    command = command or typer.main.get_command(app).main
    # Files are private until the settings are known, which may allow more (``context.settings``).
    before = os.umask(PRIVATE)
    try:
        return _run(argv, command)
    finally:
        os.umask(before)


def _run(argv: Sequence[str], command: Callable[..., Any]) -> int:
    try:
        code = command(args=list(argv), prog_name="mzshare", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # The reader of our output has closed it (as `head` does). Nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_FAILED
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if os.environ.get("MZSHARE_DEBUG") == "1":
            traceback.print_exc()
        text, code = _told(error)
        with contextlib.suppress(BrokenPipeError):
            typer.echo(text, err=True)
        return code


def _told(error: Any) -> tuple[str, int]:
    if type(error).__name__ == "NoArgsIsHelpError":  # wherever the installed typer has its click
        return error.format_message(), EXIT_WRONG_USE
    line, code = explain(error)
    return f"error: {visible(line)}", code


def explain(error: BaseException) -> tuple[str, int]:
    """An error as one line and an exit code."""
    if isinstance(error, MzShareError):
        return error.line, EXIT_WRONG_USE if isinstance(error, BadSetting) else EXIT_FAILED
    if isinstance(error, _USAGE_ERROR):
        context: Any = getattr(error, "ctx", None)
        command = context.command_path if context else "mzshare"
        return f"{_sentence(error)} Try: {command} --help", EXIT_WRONG_USE
    if isinstance(error, _CLICK_ERROR):
        return _sentence(error), EXIT_FAILED
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Try: check the file's path and permissions", EXIT_FAILED
    where = _write_report(error)
    told = f"the details are in {where}" if where else "MZSHARE_DEBUG=1 shows the details"
    return f"{type(error).__name__}: {_first_line(error)}. This error is unexpected; {told}. Try: mzshare doctor", 1


def _sentence(error: Any) -> str:
    text = " ".join(error.format_message().split()).replace(" Value error,", "")
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:300].rstrip(".")


def _write_report(error: BaseException) -> Path | None:
    """Write the traceback to a file, to find the fault with; None if no file can be written."""
    try:
        chosen = Settings.from_environment()
        folder = chosen.logs
        make_folder(folder, chosen.umask)
        path = folder / f"error-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
        text = "".join(traceback.format_exception(error))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, MzShareError):
        return None
    return path


if __name__ == "__main__":
    main()
