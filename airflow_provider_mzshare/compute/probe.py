"""Starts Spark as an app does, lets a worker of it do something, and ends: whether that works here, for ``doctor``.

Run as a process of its own, with an app's environment: ``probe.py SCRATCH JAR …``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_mzshare.compute.launchers.environment import app_environment
from airflow_provider_mzshare.compute.session import check_path, open_session
from airflow_provider_mzshare.errors import TerminalError

MASTER = "local[1]"
PATIENCE_SECONDS = 120.0
_READY = "spark is ready"


def try_spark(folder: Path, jars: Sequence[Path]) -> float:
    """Try Spark in a temporary folder below ``folder``. Returns the seconds it took, or raises TerminalError."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="probe-", dir=folder, ignore_cleanup_errors=True) as scratch:
        for path in (scratch, *jars):
            check_path(str(path))
        command = [sys.executable, "-m", __spec__.name, scratch, *map(str, jars)]
        try:
            ran = subprocess.run(
                command,
                env=app_environment(os.environ, "probe"),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TerminalError(
                f"Spark did not start within {PATIENCE_SECONDS:g} s", hint="again when the machine is less busy"
            ) from None
    if _READY not in ran.stdout:
        raise TerminalError(
            f"Spark does not start: {_last_words(ran.stderr)}", hint="check Java, and that the machine has free memory"
        )
    return time.monotonic() - began


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


def main(argv: Sequence[str]) -> None:
    scratch, *jars = argv
    conf = {"spark.log.level": "ERROR"}
    with open_session("mzshare doctor", master=MASTER, jars=jars, scratch=Path(scratch), conf=conf) as spark:
        if spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3:
            sys.stdout.write(_READY)


if __name__ == "__main__":
    main(sys.argv[1:])
