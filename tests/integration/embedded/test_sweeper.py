"""A swept folder takes with it what was started beside it, also what can no longer be known by its name."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import psutil

from airflow_provider_mzshare.embedded.sweeper import SweptFolder
from tests.support.waiting import wait_until

TITLED = textwrap.dedent(
    """
    import sys, time, setproctitle
    kept = open(sys.argv[1], "w")
    setproctitle.setproctitle("a server -- port: 1 " + " " * 8000)
    kept.write("up"), kept.flush()
    time.sleep(300)
    """
)
STARTER = (
    "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=-3, stderr=-3).pid)"
)


def test_a_process_that_gave_itself_a_title_and_lost_its_parent_is_swept() -> None:
    with SweptFolder("mzshare-swept-") as swept:
        log = swept.path / "log"
        command = [sys.executable, "-c", STARTER, sys.executable, "-c", TITLED, str(log)]
        pid = int(subprocess.run(command, check=True, capture_output=True).stdout)
        wait_until(lambda: log.exists() and log.read_text() == "up", 30, "the process to be up")
        process = psutil.Process(pid)
        assert str(swept.path) not in " ".join(process.cmdline())
        assert str(swept.path) not in str(process.environ())
    assert not swept.path.exists()
    assert not psutil.pid_exists(pid) or process.status() == psutil.STATUS_ZOMBIE
