"""Packs what Spark's executors run: they do not have this package, nor those that bring formats of their own."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import airflow_provider_mzshare
from airflow_provider_mzshare.formats.registry import FORMATS

log = logging.getLogger(__name__)

TRAVELS = (
    "__init__.py",
    "core/__init__.py",
    "core/arrow_types.py",
    "core/ids.py",
    "core/registry.py",
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
    *(f"formats/{name}.py" for name in ("__init__", "base", "bytes", "columns", "json", "jsontext", "native", "text")),
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
        for name, file in sorted(set(module_files(_formats_of_others()))):
            archive.write(file, name)
    return target


def _formats_of_others() -> Iterator[str]:
    """One that cannot be loaded does not stop those that can: its own tables fail, and say why."""
    for name, target in FORMATS.targets.items():
        if not target.startswith(f"{airflow_provider_mzshare.__name__}."):
            try:
                yield from FORMATS.get(name).modules
            except Exception:
                log.exception("format %s (%s) cannot be loaded", name, target)


def module_files(modules: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Each module's name in an archive and its file, with the packages that it is in."""
    for module in modules:
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            found = find_spec(".".join(parts[:length]))
            if found and found.origin and found.has_location:
                inside = [*parts[:length], "__init__"] if found.submodule_search_locations else parts[:length]
                yield "/".join(inside) + ".py", Path(found.origin)


def worker_conf(master: str) -> dict[str, str]:
    """Spark settings for the processes that run the writer. Executors of a cluster do not have this package."""
    if not master.startswith("local"):
        return {}
    return {"spark.python.daemon.module": "airflow_provider_mzshare.storage.writing.worker_daemon"}
