"""Packs the fan-out writer so that it travels with the job to executors that do not have this package."""

from __future__ import annotations

import zipfile
from pathlib import Path

import airflow_provider_mzshare

TRAVELS = ("__init__.py", "types/__init__.py", "types/ids.py", "types/schema.py", "storage/__init__.py")
"""Beside everything in ``storage/fanout``: what the writer imports, which is the standard library, Arrow and numpy."""


def pack_writer(folder: Path) -> Path:
    """Write ``mzshare_fanout.zip`` into ``folder`` and return its path."""
    root = Path(airflow_provider_mzshare.__file__).parent
    files = [root / name for name in TRAVELS] + sorted((root / "storage" / "fanout").glob("*.py"))
    target = folder / "mzshare_fanout.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, Path(root.name) / file.relative_to(root))
    return target


def worker_conf(master: str) -> dict[str, str]:
    """Spark settings for the processes that run the writer. Executors of a cluster do not have this package."""
    if not master.startswith("local"):
        return {}
    return {"spark.python.daemon.module": "airflow_provider_mzshare.storage.ingestion.daemon"}
