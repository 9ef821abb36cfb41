"""A run's log, where it is a file of this machine: its lines, and new ones as they are written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

_POLL_SECONDS = 0.2


def read_lines(path: Path, *, tail: int | None = None, follow: Callable[[], bool] | None = None) -> Iterator[str]:
    """As ``Launcher.logs``; none where there is no such file."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = file.readlines()
        yield from (line.rstrip("\n") for line in (lines if tail is None else lines[-tail:] if tail else []))
        while follow is not None:
            going_on = follow()  # asked before reading, so that the last lines are not missed
            yield from (line.rstrip("\n") for line in file.readlines())
            if not going_on:
                return
            time.sleep(_POLL_SECONDS)
