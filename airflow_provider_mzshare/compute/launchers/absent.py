"""Stands for a launcher that is not installed here. Its apps may be running, but cannot be reached from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from airflow_provider_mzshare.compute.launchers.base import Handle, Liveness

_ELSEWHERE = "another machine"


class AbsentRuns:
    """Runs are treated like those of another machine: of unknown state, and asked to stop through the catalog."""

    def find(self, job_id: str, folder: Path) -> Handle:
        return Handle(job_id, folder, _ELSEWHERE)

    def status(self, handle: Handle) -> Liveness:
        return "unknown"

    def request_stop(self, handle: Handle) -> None:
        pass

    def kill(self, handle: Handle) -> int:
        return 0

    def logs(
        self, handle: Handle, *, tail: int | None = None, follow: Callable[[], bool] | None = None
    ) -> Iterator[str]:
        return iter(())
