"""Packs what Spark's Python processes run: the fan-out writer, formats, envelopes and the readers of connectors.

It travels with the job: executors need not have this package, nor those that bring parts of their own.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import airflow_provider_mzshare
from airflow_provider_mzshare.connectors.registry import kinds
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.formats.registry import FORMATS
from airflow_provider_mzshare.storage.writing import worker_daemon

TRAVELS = (
    "__init__.py",
    "core/__init__.py",
    "core/arrow_types.py",
    "core/ids.py",
    "core/registry.py",
    "core/schema.py",
    "errors.py",
    "storage/__init__.py",
    "connectors/__init__.py",
    "connectors/base.py",
    "connectors/places.py",
    "connectors/record_times.py",
    "connectors/records.py",
    "connectors/spans.py",
    "envelopes/__init__.py",
    "envelopes/base.py",
    "envelopes/row_changes.py",
    "formats/__init__.py",
    "formats/base.py",
    "formats/columns.py",
    "formats/jsontext.py",
)
"""Beside everything in ``storage/fanout``: what the pass imports, which is the standard library, Arrow and numpy."""


def pack_writer(folder: Path) -> Path:
    """Write ``mzshare_fanout.zip`` into ``folder`` and return its path."""
    root = Path(airflow_provider_mzshare.__file__).parent
    files = [root / name for name in TRAVELS] + sorted((root / "storage" / "fanout").glob("*.py"))
    packed = {str(Path(root.name) / file.relative_to(root)): file for file in files}
    envelopes = [type(each).__module__ for each in ENVELOPES.all()]
    parts = (envelopes, *(each.modules for each in FORMATS.all()), *(kind.executor_modules for kind in kinds()))
    packed.update(module_files({module for modules in parts for module in modules}))
    target = folder / "mzshare_fanout.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in packed.items():
            archive.write(file, name)
    return target


def module_files(modules: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Modules and the packages they stand in, as names in an archive and files."""
    parents = {name.rsplit(".", depth)[0] for name in modules for depth in range(1, name.count(".") + 1)}
    for name in sorted({*modules, *parents}):
        found = find_spec(name)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"{name} must be sent to executors, but is not a module in a file", name=name)
        path = name.replace(".", "/")
        yield f"{path}/__init__.py" if found.submodule_search_locations else f"{path}.py", Path(found.origin)


def worker_conf(master: str, modules: Iterable[str] = ()) -> dict[str, str]:
    """Spark settings for the processes that run the writer. Executors of a cluster do not have this package.

    :param modules: to be imported there before they are needed.
    """
    if not master.startswith("local"):
        return {}
    return {
        "spark.python.daemon.module": "airflow_provider_mzshare.storage.writing.worker_daemon",
        f"spark.executorEnv.{worker_daemon.VARIABLE}": ",".join(modules),
    }
