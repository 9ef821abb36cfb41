"""What every launcher can do. It runs what it is told; whether something should run is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from airflow_provider_mzshare.compute.jobs import AppJob

Liveness = Literal["alive", "gone", "unknown"]
"""``unknown``: not to be told from here, as for a process of another machine."""


@dataclass(frozen=True)
class Handle:
    """A run. ``started`` belongs to ``pid``: together they name a process for ever, a pid alone does not."""

    job_id: str
    folder: Path
    host: str
    pid: int | None = None
    started: float | None = None


class Launcher(Protocol):
    @property
    def name(self) -> str: ...

    def start(self, job: AppJob) -> Handle:
        """Run the app; it outlives the caller."""
        ...

    def find(self, job_id: str, folder: Path) -> Handle | None:
        """A run whose process nobody noted, if it is or was here."""
        ...

    def status(self, handle: Handle) -> Liveness: ...

    def request_stop(self, handle: Handle) -> None:
        """Ask the app to end cleanly. Nothing happens to one that is gone."""
        ...

    def kill(self, handle: Handle) -> int:
        """End everything that belongs to the run, at once; says how many processes that were."""
        ...

    def logs(
        self, handle: Handle, *, tail: int | None = None, follow: Callable[[], bool] | None = None
    ) -> Iterator[str]:
        """The run's output by lines; with ``follow``, new ones too until that answers False."""
        ...
