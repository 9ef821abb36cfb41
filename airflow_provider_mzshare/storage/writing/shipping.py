"""Packs the fan-out writer and the load generator: both travel with the job to executors without this package."""

from __future__ import annotations

import zipfile
from pathlib import Path

import airflow_provider_mzshare

TRAVELS = (
    "__init__.py",
    "core/__init__.py",
    "core/ids.py",
    "core/schema.py",
    "storage/__init__.py",
    "connectors/__init__.py",
    "connectors/base.py",
    "connectors/record_times.py",
    "connectors/records.py",
    *(
        f"connectors/load_generator/{name}.py"
        for name in ("__init__", "auction", "datasource", "draws", "fields", "generators", "plan")
    ),
)
"""Beside everything in ``storage/fanout``: what the pass imports, which is the standard library, Arrow and numpy."""


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
    return {"spark.python.daemon.module": "airflow_provider_mzshare.storage.writing.worker_daemon"}
