"""Benchmarks are run by hand, on quiet machines: here it is shown that those that start no server still run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_journals_are_read_from_the_disk_and_from_the_cache() -> None:
    command = [sys.executable, "-m", "tests.perf.bench_journal", "read", "0.25"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("from the disk") == ran.stdout.count("from the cache") == 5


def test_pushes_are_measured_with_and_without_flushes() -> None:
    command = [sys.executable, "-m", "tests.perf.bench_journal", "push", "0.05"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("threads") == 3


def test_the_index_is_measured_in_memory_and_in_files() -> None:
    command = [sys.executable, "-m", "tests.perf.bench_index", "3000"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    for told in ("hashes, in memory", "hashes, mapped", "files, in memory", "files, mapped", "bytes per key"):
        assert told in ran.stdout
