"""A small real app in the place of the Spark one, for tests of launchers: it tells what it sees, and moves no data."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.compute.launchers.base import Handle, Launcher
from tests.support.waiting import wait_until

APP = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
from airflow_provider_mzshare.compute.jobs import read_job

job = read_job(sys.argv[1])
if job.source_name.endswith("broken"):
    raise RuntimeError("the app is broken")
fresh = "import time; print('helper', flush=True); time.sleep(600)"
# As pyspark does: a daemon with a process group of its own, in the same session.
helper = subprocess.Popen([sys.executable, "-c", fresh], process_group=0) if sys.version_info >= (3, 11) else (
    subprocess.Popen([sys.executable, "-c", fresh], preexec_fn=os.setpgrp))
stopping = []
if not job.source_name.endswith("stubborn"):
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
facts = {
    "pid": os.getpid(), "sid": os.getsid(0), "helper": helper.pid, "helper_group": os.getpgid(helper.pid),
    "env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd(),
    "stdin": os.readlink("/proc/self/fd/0"), "fds": sorted(os.listdir("/proc/self/fd")), "url": job.catalog_url,
}
Path("facts.tmp").write_text(json.dumps(facts))
os.rename("facts.tmp", "facts.json")
print("ready", flush=True)
while not stopping:
    time.sleep(0.02)
print("finished the tick", flush=True)
helper.kill()
"""
SECRET = "hunter2"


def write_app(folder: Path) -> Path:
    path = folder / "app.py"
    path.write_text(APP)
    return path


def id_in(folder: Path) -> str:
    """A run may be found by its id alone: tests that run side by side need ids of their own, as real jobs have."""
    return f"ingest-{folder.name}-{sha256(str(folder).encode()).hexdigest()[:8]}"


def job_in(folder: Path, *, name: str = "public.s") -> AppJob:
    return AppJob(
        job_id=id_in(folder),
        source_id="u1",
        source_name=name,
        catalog_url=f"postgresql+psycopg://u:{SECRET}@h/d",
        warehouse="/wh",
        master="local[1]",
        connection={"password": SECRET},
        folder=folder,
    )


def started(
    launcher: Launcher, handles: list[Handle], folder: Path, *, name: str = "public.s"
) -> tuple[Handle, dict[str, Any]]:
    """A run that is up, and what its app sees."""
    handle = launcher.start(job_in(folder, name=name))
    handles.append(handle)
    facts = folder / "facts.json"
    wait_until(lambda: facts.exists() or launcher.status(handle) == "gone", 120, "the app to write its facts")
    assert facts.exists(), f"the app has ended: {list(launcher.logs(handle))}"
    return handle, json.loads(facts.read_text())
