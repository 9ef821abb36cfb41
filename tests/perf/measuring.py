"""What a run costs: CPU of all its processes, by their parts, and the most memory that they had together.

Every process is looked at a few times a second, and what it had used when it was last seen counts. The kernel's own sum
over ended processes is no measure: the parent of Spark's Python workers never asks how they ended, so theirs is in
nobody's. It is a check, as it may not be larger: whoever loses its parent is given to this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import psutil

EVERY_SECONDS = 0.25
PARTS = ("driver", "JVM", "workers")
_PR_SET_CHILD_SUBREAPER = 36
_END_SECONDS = 30.0
_MB = 1 << 20


@dataclass
class Usage:
    wall: float = 0.0
    cpu: float = 0.0
    """Of all processes, the ended ones too."""
    parts: dict[str, float] = field(default_factory=dict)
    """The same, as last seen of each."""
    threads: dict[str, float] = field(default_factory=dict)
    """Of the JVM, by the beginning of their names, as last seen."""
    rss_mb: float = 0.0
    """Pages that processes share count for each of them."""


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent ends: else it would no longer be seen."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


@contextlib.contextmanager
def measured() -> Iterator[Usage]:
    """All processes that begin inside and descend from this one; those that are there already do not count."""
    usage = Usage()
    before = {child.pid for child in psutil.Process().children()}
    cpu, began = _ended_cpu(), time.monotonic()
    sampler = _Sampler(before)
    sampler.start()
    try:
        yield usage
        usage.wall = time.monotonic() - began
    finally:
        sampler.done.set()
        sampler.join()
        _reap(before)
    usage.parts = {part: sampler.by_part()[part] for part in PARTS}
    usage.cpu = max(sum(usage.parts.values()), _ended_cpu() - cpu)
    usage.rss_mb = sampler.rss / _MB
    usage.threads = dict(sampler.by_thread().most_common(12))


def kill_new(before: set[int]) -> None:
    """End what began since, by number."""
    for process in _descendants(before):
        with contextlib.suppress(psutil.Error):
            process.kill()


def live_cpu(root: int) -> float:
    """CPU so far of a process and its descendants that are there now, and of those they waited for."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(root)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


def live_rss_mb(root: int) -> float:
    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(root)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += each.memory_info().rss
    return total / _MB


def _ended_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _descendants(before: set[int]) -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        if child.pid not in before:
            found.append(child)
            with contextlib.suppress(psutil.Error):
                found += child.children(recursive=True)
    return found


def _reap(before: set[int]) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while left := [child for child in psutil.Process().children() if child.pid not in before]:
        for child in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)
        if time.monotonic() > deadline:
            raise AssertionError(f"still running: {[child.cmdline() for child in left]}")
        time.sleep(0.05)


class _Sampler(threading.Thread):
    def __init__(self, before: set[int]) -> None:
        super().__init__(daemon=True)
        self._before = before
        self._cpu: dict[tuple[int, float], tuple[str, float]] = {}
        self._threads: dict[tuple[int, int], tuple[str, float]] = {}
        self.done = threading.Event()
        self.rss = 0

    def run(self) -> None:
        while not self.done.wait(EVERY_SECONDS):
            rss = 0
            for process in _descendants(self._before):
                with contextlib.suppress(psutil.Error, OSError, ValueError):
                    rss += self._look(process)
            self.rss = max(self.rss, rss)

    def _look(self, process: psutil.Process) -> int:
        with process.oneshot():
            key, times, command = (process.pid, process.create_time()), process.cpu_times(), process.cmdline()
            # One that is about to end has no command any more.
            part = _part(command) if command else self._cpu.get(key, ("driver", 0.0))[0]
            self._cpu[key] = part, times.user + times.system
            if part == "JVM":
                self._look_at_threads(process.pid)
            return int(process.memory_info().rss)

    def _look_at_threads(self, pid: int) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
                words = rest.split()
                self._threads[pid, int(thread)] = name, (int(words[11]) + int(words[12])) / tick

    def by_part(self) -> Counter[str]:
        return _summed(self._cpu.values())

    def by_thread(self) -> Counter[str]:
        return _summed((name.rstrip("0123456789-#. "), used) for name, used in self._threads.values())


def _summed(pairs: Iterable[tuple[str, float]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, used in pairs:
        total[name] += used  # type: ignore[assignment]
    return total


def _part(command: list[str]) -> str:
    if command and os.path.basename(command[0]) == "java":
        return "JVM"
    return "workers" if any("daemon" in word for word in command) else "driver"
