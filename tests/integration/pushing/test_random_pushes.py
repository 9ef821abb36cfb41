"""Processes push at random, are killed, stopped for longer than their lease, and started again: nothing is doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_mzshare.storage.crashpoints import JOURNAL_LABELS, VARIABLE
from tests.support.inbox import LEASE_SECONDS, ROOT, Inbox
from tests.support.push_worker import check, read, unsettled
from tests.support.waiting import wait_until


class Crew:
    """Workers with a diary each, of which some have partitions and others wait for one."""

    def __init__(self, inbox: Inbox, folder: Path, seed: int, *, workers: int, pushes: int) -> None:
        self.inbox, self.seed, self.pushes = inbox, seed, pushes
        self.chance = random.Random(seed)
        self.diaries = [folder / f"w{number}" for number in range(workers)]
        self.at_work: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self, diary: Path, *, pushes: int | None = None, crash: str | None = None) -> None:
        env = {**self.inbox.env, **({VARIABLE: crash} if crash else {})}
        words = [str(diary), str(self.seed), str(self.pushes if pushes is None else pushes)]
        command = [sys.executable, "-m", "tests.support.push_worker", *words]
        self.at_work[diary] = subprocess.Popen(command, env=env, cwd=ROOT)

    def disturb(self, times: int) -> None:
        """So often, kill or stop one that is at work; whoever is not there is started, maybe to die at a label."""
        for _ in range(times):
            for diary in self.diaries:
                if (process := self.at_work.get(diary)) is None or process.poll() is not None:
                    label = f"{self.chance.choice(JOURNAL_LABELS)}@{self.chance.randint(1, 30)}"
                    self.start(diary, crash=label if self.chance.random() < 0.5 else None)
            lines = self._lines() + self.chance.randint(1, 60)
            wait_until(lambda enough=lines: self._worked(enough), 60, "pushes, or an end")  # type: ignore[misc]
            _, process = self.chance.choice([*self.at_work.items()])
            if process.poll() is None:
                self._stop_for_long(process) if self.chance.random() < 0.3 else process.kill()

    def _lines(self) -> int:
        return sum(diary.read_bytes().count(b"\n") for diary in self.diaries if diary.exists())

    def _worked(self, lines: int) -> bool:
        return self._lines() >= lines or any(process.poll() is not None for process in self.at_work.values())

    def _stop_for_long(self, process: subprocess.Popen[bytes]) -> None:
        """Long enough to be replaced, if somebody wants its partition."""
        process.send_signal(signal.SIGSTOP)
        time.sleep(LEASE_SECONDS * self.chance.choice((0.3, 1.6)))
        process.send_signal(signal.SIGCONT)

    def settle(self) -> None:
        """Nobody is disturbed any more: each sends again what it was not told of."""
        for process in self.at_work.values():
            process.kill()
            process.wait()
        for diary in self.diaries:
            self.start(diary, pushes=3)
        for process in self.at_work.values():
            assert process.wait(120) == 0

    def end(self) -> None:
        for process in self.at_work.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


def run(inbox: Inbox, folder: Path, seed: int, *, workers: int, pushes: int, times: int) -> None:
    crew = Crew(inbox, folder, seed, workers=workers, pushes=pushes)
    try:
        crew.disturb(times)
        crew.settle()
    finally:
        crew.end()
    found = {partition: inbox.texts(partition) for partition in range(inbox.partitions)}
    assert not [name for diary in crew.diaries for name in unsettled(read(diary))]
    happened = check(crew.diaries, found)
    print(f"seed {seed}: {dict(happened)}, {sum(map(len, found.values()))} messages")
    assert happened["told"] > workers


def test_pushes_of_processes_that_are_killed_and_replaced(opened: Callable[..., Inbox], tmp_path: Path) -> None:
    run(opened(partitions=1), tmp_path, 1, workers=2, pushes=200, times=4)


@pytest.mark.full(seconds=90)
@pytest.mark.parametrize("seed", [int(os.environ.get("SEED", n)) for n in range(2, 5)])
@pytest.mark.parametrize("partitions", [1, 2])
def test_many_more_of_them(opened: Callable[..., Inbox], tmp_path: Path, seed: int, partitions: int) -> None:
    run(opened(partitions=partitions), tmp_path, seed, workers=3, pushes=2_000, times=40)
