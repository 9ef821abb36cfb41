"""Which launchers there are, which one starts new jobs, and which one started a job. A new one of ours is one line."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_mzshare.compute.launchers.absent import AbsentRuns
from airflow_provider_mzshare.compute.launchers.base import Launcher, Runs
from airflow_provider_mzshare.core.registry import Registry
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.settings import Settings

LAUNCHERS: Registry[type[Launcher]] = Registry(
    "launcher",
    "mzshare.launchers",
    {"process": "airflow_provider_mzshare.compute.launchers.process:ProcessLauncher"},
)


class UnknownLauncher(TerminalError):
    """A way to run apps that is not installed here. :param known: those that are."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"there is no launcher {name!r} here; there are: {', '.join(known)}",
            hint="install the package that has it, or set MZSHARE_LAUNCHER to one of these for new apps",
        )


class Launchers:
    """Those of one catalog's settings, by name; each is made when it is first asked for.

    :param app: the Python file to run; by default the app of the job's kind.
    """

    def __init__(self, settings: Settings, app: Path | None = None) -> None:
        self._settings, self._app = settings, app
        self._made: dict[str, Launcher] = {}

    @property
    def chosen_name(self) -> str:
        """The launcher for new jobs, by the settings."""
        return self._settings.launcher

    def chosen(self) -> Launcher:
        return self.get(self.chosen_name)

    def get(self, name: str) -> Launcher:
        if name not in LAUNCHERS:
            raise UnknownLauncher(name, list(LAUNCHERS))
        if name not in self._made:
            self._made[name] = LAUNCHERS.get(name).from_settings(self._settings, self._app)
        return self._made[name]

    def runs_of(self, name: str) -> Runs:
        """Of the launcher that started a job, by the name that is stored with the job.

        Where that one is not installed, they are as those of another machine: a job that cannot be reached from here
        must not keep a reconciler or a status from all the others.
        """
        return self.get(name) if name in LAUNCHERS else AbsentRuns()
