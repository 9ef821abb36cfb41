"""Find what a test session started and did not end."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil

from tests.support.waiting import wait_until

# Started by the standard library once per process; it ends with us by design.
OURS_UNTIL_EXIT = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def stop_holding_no_lock(pid: int, catalog: Path) -> None:
    """A process that is stopped in the middle of a transaction keeps everybody from the catalog, and that is not what
    a test of zombies is about.
    """
    for _ in range(100):
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, 10, f"{pid} to stop")
        with closing(sqlite3.connect(catalog, timeout=1, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.1)
            else:
                return
    raise AssertionError(f"{pid} always holds the catalog's lock")


def kill_all_in(folder: Path) -> None:
    """Whatever works in a folder below this one, as apps do in theirs, whoever knows of it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder):
                process.kill()


def left_behind(folder: Path, patience: float = 10.0) -> list[str]:
    """Kill what is still there after ``patience`` seconds, and return a line for each such process."""
    deadline = time.monotonic() + patience
    while (found := _running(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    lines = []
    for process in found:
        try:
            lines.append(f"{process.pid} {' '.join(process.cmdline())[:300]}")
            process.kill()
        except psutil.NoSuchProcess:
            continue
    return lines


def _running(folder: Path) -> list[psutil.Process]:
    """Return our descendants, and detached processes that name the session's own folder."""
    children = {child.pid: child for child in psutil.Process().children(recursive=True)}
    for process in psutil.process_iter():
        if process.pid != psutil.Process().pid and str(folder) in " ".join(_words(process)):
            children[process.pid] = process
    return [process for process in children.values() if _counts(process)]


def _counts(process: psutil.Process) -> bool:
    words = " ".join(_words(process))
    return bool(words) and not any(known in words for known in OURS_UNTIL_EXIT)


def _words(process: psutil.Process) -> list[str]:
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()
    except psutil.Error:
        return []
