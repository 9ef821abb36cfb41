"""Where the files of the Spark apps are."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_mzshare.compute.launchers.environment import package_root
from airflow_provider_mzshare.errors import LaunchFailed


def find_app(name: str = "ingest") -> Path:
    """A Spark app's file: inside the package where it was installed, beside it in a checkout."""
    for folder in (package_root() / "spark_apps", package_root().parent / "spark_apps"):
        if (path := folder / f"{name}.py").is_file():
            return path
    raise LaunchFailed(f"the Spark app {name}.py is not installed", hint="pip install --force-reinstall the package")
