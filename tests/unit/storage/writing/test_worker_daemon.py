"""What a Python worker of Spark does before every task."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

CODE = """
import importlib, sys, zipimport
from airflow_provider_mzshare.storage.writing.worker_daemon import keep_archives
sys.path.insert(0, sys.argv[1])
import in_archive
read = zipimport._read_directory
opened = []
zipimport._read_directory = lambda archive: opened.append(archive) or read(archive)
importlib.invalidate_caches()
before = len(opened)
keep_archives()
importlib.invalidate_caches()
sys.path.insert(0, sys.argv[2])
import in_later
print(before, [archive == sys.argv[2] for archive in opened[before:]], in_archive.X, in_later.X)
"""


def test_archives_are_not_read_anew_and_later_ones_are_found(tmp_path: Path) -> None:
    archives = []
    for name in ("in_archive", "in_later"):
        archives.append(tmp_path / f"{name}.zip")
        with zipfile.ZipFile(archives[-1], "w") as archive:
            archive.writestr(f"{name}.py", f"X = {name!r}")
    told = subprocess.run(
        [sys.executable, "-c", CODE, *archives], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.split(" ", 1) == ["1", "[True] in_archive in_later\n"]
