"""The demo leaves nothing behind, whenever and however it is ended."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from airflow_provider_mzshare.demo.story import pace
from airflow_provider_mzshare.embedded.sweeper import MARK, SIGNALS
from tests.support.waiting import wait_until

STAGES = ("Starting a Kafka broker", "Starting Airflow", "A topic with", "mzshare_quickstart", "Two tables live")
"""What it says when it begins with something: its broker, Airflow, the producer, the ingestion app, and so on."""
STAGE_SECONDS = 400.0
END_SECONDS = 60.0
WITH_EARS = f"""
import runpy, signal
for number in {[int(number) for number in SIGNALS]}:
    signal.signal(number, signal.SIG_DFL)
runpy.run_module("airflow_provider_mzshare.demo", run_name="__main__")
"""
"""Under nohup, or in the background of a script, tests are deaf to signals, and so is what they start."""


@contextmanager
def demo(folder: Path, jars: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Started as ``make demo`` does, with its temporary folder in ``folder`` and what it says in a file there."""
    env = {**os.environ, "TMPDIR": str(folder), "MZSHARE_JARS": str(jars), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", WITH_EARS]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said, start_new_session=True)
    try:
        yield process
    finally:
        # Also of a test that has failed nothing stays.
        for one in [process, *alive(folder)]:
            with suppress(psutil.Error, ProcessLookupError):
                one.kill()
        process.wait()


def alive(folder: Path) -> list[psutil.Process]:
    """By what they are called with, by the mark that they inherited, or by files that they have open: a process that
    gives itself a title has lost the other two."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = (*process.cmdline(), process.environ().get(MARK, ""), *opened(process))
            if any(str(folder) in word for word in words) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return [process for process in found if process.pid != os.getpid()]


def opened(process: psutil.Process) -> Iterator[str]:
    """Also what was removed since."""
    for file in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):
            yield os.readlink(file)


def said(folder: Path) -> str:
    return (folder / "said").read_text(errors="replace")


def await_stage(process: subprocess.Popen[bytes], folder: Path, stage: str) -> None:
    def begun() -> bool:
        assert process.poll() is None, said(folder)
        return stage in said(folder)

    wait_until(begun, STAGE_SECONDS, f"it to say {stage!r}")


def told(process: psutil.Process) -> str:
    """It may end while it is looked at."""
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:200]}"
    return f"{process.pid}"


def assert_nothing_left(folder: Path) -> None:
    def left() -> list[str]:
        return [told(process) for process in alive(folder)] + os.listdir(folder)

    wait_until(lambda: left() == ["said"], END_SECONDS, "everything to be gone")


@pytest.mark.parametrize(
    ("number", "also"), [(signal.SIGTERM, signal.SIGINT), (signal.SIGHUP, None), (signal.SIGKILL, None)]
)
def test_one_that_is_ended_while_its_broker_starts_leaves_nothing(
    number: signal.Signals, also: signal.Signals | None, jars: Path, tmp_path: Path
) -> None:
    with demo(tmp_path, jars) as process:
        await_stage(process, tmp_path, STAGES[0])
        wait_until(lambda: len(alive(tmp_path)) >= 2, 60, "the sweeper and the broker, or what prepares it")
        process.send_signal(number)
        if also is not None:
            process.send_signal(also)
        code = process.wait(END_SECONDS)
        if number is signal.SIGKILL:
            assert code == -number
        else:
            assert code in (128 + number, 128 + (also or number)), said(tmp_path)
            assert "Interrupted: everything was stopped" in said(tmp_path)
            assert not alive(tmp_path), "all was gone before it ended"
        assert_nothing_left(tmp_path)


@pytest.mark.full
@pytest.mark.timeout(3_600)
def test_one_that_is_ended_at_ten_random_moments_leaves_nothing(jars: Path, tmp_path: Path) -> None:
    seed = int(os.environ.get("DEMO_SEED", time.time_ns() % 1_000_000))
    print(f"DEMO_SEED={seed}")
    chance = random.Random(seed)
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP] * 3 + [signal.SIGKILL]
    stages = [*STAGES, *STAGES]
    chance.shuffle(signals)
    for turn, (number, stage) in enumerate(zip(signals, stages, strict=True)):
        folder = tmp_path / str(turn)
        folder.mkdir()
        seconds = chance.uniform(0, 15)
        moment = f"turn {turn} of seed {seed}: {number.name} {seconds:.1f} s after {stage!r}"
        with demo(folder, jars) as process:
            await_stage(process, folder, stage)
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                pytest.fail(f"{moment}: it ended by itself: {said(folder)}")
            before = len(alive(folder))
            process.send_signal(number)
            began = time.monotonic()
            process.wait(END_SECONDS)
            assert_nothing_left(folder)
            print(f"{moment}: {before} processes, gone after {time.monotonic() - began:.1f} s")


def test_the_pace_is_told_and_judges_nothing() -> None:
    told = pace(1.02, 1.91)
    assert "for information only" in told
    assert "1.87 times as long" in told
    assert "too few commits" in pace(0.0, 1.0)
