"""A signal ends an app wherever it meets it: also inside of the very wait that it is to end."""

from __future__ import annotations

import subprocess
import sys

TURNS = 60
SCRIPT = f"""
import os, signal, threading, time
from airflow_provider_mzshare.control.supervision.app_job import set_by_signals

for turn in range({TURNS}):
    stop = set_by_signals(signal.SIGTERM)
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while not stop.wait(0):
        pass
print("all")
"""


def test_no_signal_is_lost_in_the_wait_for_it() -> None:
    """With ``Event.set`` in the handler itself, some turn in ten never ends: the main thread has the event's lock."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout == "all\n", ran.stderr
