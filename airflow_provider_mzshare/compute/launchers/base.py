"""What every launcher can do. It runs what it is told; whether something should run is decided elsewhere.

A launcher is one module that has a class of this shape, and one line: in ``registry.py``, or in the entry points of
another package (group ``mzshare.launchers``). The name of that line is stored with each job, so it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.settings import Settings

Liveness = Literal["alive", "gone", "unknown"]
"""The state of the app's own process, not of others that it has started. ``gone`` is certain: what the run held is
given to others at once. ``unknown``: not to be told from here, as for a process of another machine."""


@dataclass(frozen=True)
class Handle:
    """A run. ``started`` belongs to ``pid``: together they name a process for ever, a pid alone does not.

    ``machine`` says what the pid is a number of: containers may share a host's name. None where that is not known.
    All four are those that the app notes of itself. A launcher that knows its runs by other names has the job's id and
    folder to know them by.
    """

    job_id: str
    folder: Path
    host: str
    pid: int | None = None
    started: float | None = None
    machine: str | None = None


class Runs(Protocol):
    """Questions about runs and actions on them, also for runs that another process started long ago."""

    def find(self, job_id: str, folder: Path) -> Handle | None:
        """Find a run whose process was never recorded, if it is or was on this machine."""
        ...

    def status(self, handle: Handle) -> Liveness: ...

    def request_stop(self, handle: Handle) -> None:
        """Ask the app to end cleanly. Does nothing if the app is gone or cannot be reached."""
        ...

    def kill(self, handle: Handle) -> int:
        """Kill all processes of the run at once, and return how many there were."""
        ...

    def logs(
        self, handle: Handle, *, tail: int | None = None, follow: Callable[[], bool] | None = None
    ) -> Iterator[str]:
        """The run's output by lines; with ``follow``, new ones too until that answers False."""
        ...


class Launcher(Runs, Protocol):
    @classmethod
    def from_settings(cls, settings: Settings, app: Path | None = None) -> Launcher:
        """Take what it needs of the settings; ``BadSetting`` where it cannot do with them. Starts nothing yet.

        :param app: the Python file to run; by default the app of the job's kind.
        """
        ...

    def start(self, job: AppJob) -> Handle:
        """Run the app; it outlives the caller. ``LaunchFailed`` where it could not even begin."""
        ...

    def probe(self) -> str:
        """For ``mzshare doctor``: whether apps could be started from here, in a line; a typed error where not."""
        ...
