"""A temporary folder that takes everything with it: whatever was started beside it ends, however its owner ends.

A process of its own waits for the owner's end, by an exit, a signal or a KILL: ``sweeper.py FOLDER OWNER``, with a pipe
from the owner on its standard input. Then it kills every process that belongs to the folder and removes it. It is
started by path and without the package.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

MARK = "MZSHARE_SWEPT_WITH"
"""Every process that is started has the folder in this variable. Detached apps keep it, as all MZSHARE_… variables."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS = 30.0
_LOOKS = 3
"""So many looks in a row must find no process: one that was about to start another is dead by then."""
_PAUSE = 0.1


class SweptFolder:
    """:param prefix: of its name."""

    def __init__(self, prefix: str) -> None:
        # Signals are blocked: one between these two calls would leave the folder. The sweeper inherits this mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            command = [sys.executable, "-I", __file__, str(self.path), str(os.getpid())]
            self._sweeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Children inherit this; a process itself is known by its environment at its start, so this one is not swept.
        os.environ[MARK] = str(self.path)

    def sweep(self) -> None:
        """Returns when nothing of it is left. May be called again."""
        os.environ.pop(MARK, None)
        if self._sweeper.stdin is not None:
            self._sweeper.stdin.close()
        self._sweeper.wait(SECONDS * 2)

    def __enter__(self) -> SweptFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.sweep()


def sweep(folder: str, spared: Collection[int]) -> bool:
    """Kill what belongs to the folder until nothing is found, and remove it; True when nothing is left."""
    deadline, quiet = time.monotonic() + SECONDS, 0
    while quiet < _LOOKS and time.monotonic() < deadline:
        found = [process for process in belonging(folder) if process.pid not in spared]
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        quiet = 0 if found else quiet + 1
        time.sleep(_PAUSE)
    while os.path.exists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
    return quiet == _LOOKS and not os.path.exists(folder)


def belonging(folder: str) -> list[psutil.Process]:
    """Processes that have the mark, or the folder in their command line; and those without a terminal that have a file
    of it open: a process that gives itself a title, as Airflow's do, writes over its command line and environment.
    """
    return [process for process in psutil.process_iter() if _belongs(process, folder)]


def _belongs(process: psutil.Process, folder: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return (
            process.environ().get(MARK) == folder
            or any(folder in word for word in process.cmdline())
            or (process.terminal() is None and any(_is_below(path, folder) for path in _open_files(process)))
        )
    except (psutil.Error, OSError):
        return False


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _open_files(process: psutil.Process) -> Iterator[str]:
    """Also files that are removed and still open, where the system tells."""
    opened = f"/proc/{process.pid}/fd"
    if not os.path.isdir(opened):
        yield from (file.path for file in process.open_files())
        return
    for number in os.listdir(opened):
        with suppress(OSError):
            yield os.readlink(f"{opened}/{number}")


def main(argv: list[str]) -> int:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    folder, owner = argv[0], int(argv[1])
    while os.read(0, 1):
        pass
    return 0 if sweep(folder, {os.getpid(), owner}) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
