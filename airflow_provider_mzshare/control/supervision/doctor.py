"""Checks whether this machine, its storage and its catalog can do the work. What it creates, it removes again."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from airflow_provider_mzshare.compute import jars, probe
from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.connectors.registry import kinds
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.upstreams import reach
from airflow_provider_mzshare.errors import MzShareError, TerminalError
from airflow_provider_mzshare.settings import Settings, is_local
from airflow_provider_mzshare.storage.collections.compaction import compaction_is_safe, put_if_absent_works
from airflow_provider_mzshare.storage.collections.faults import check_takes_files
from airflow_provider_mzshare.storage.file_check import check_files
from airflow_provider_mzshare.urls import shown_url

PACKAGES = ("pyspark", "pyspark-client", "delta-spark", "deltalake", "pyarrow", "sqlalchemy")
"""The packages that kinds of sources connect with are checked too; each kind names its own."""
PINNED = {"pyspark": "4.0.4", "pyspark-client": "4.0.4", "delta-spark": "4.1.0"}
"""These versions only work together; pyproject.toml says why."""


@dataclass(frozen=True)
class Finding:
    """The result of one check. ``hint`` says what to do when it failed."""

    check: str
    ok: bool
    detail: str
    hint: str = ""


def examine(
    settings: Settings, connections: ConnectionStore, names: Sequence[str] = (), *, spark: bool = True
) -> Iterator[Finding]:
    """:param names: connections to try as well.
    :param spark: start one, as an app would; it takes some seconds.
    """
    yield _tried("python", _python)
    yield _tried("java", _java)
    for package in (*PACKAGES, *(package for kind in kinds() for package in kind.packages)):
        yield _tried(package, lambda package=package: _package(package))  # type: ignore[misc]
    yield _tried("jars", lambda: _jars(settings))
    yield _tried("storage", lambda: _storage(settings.warehouse))
    yield _tried("compaction", _compaction)
    yield _tried("files", _files)
    yield _tried("catalog", lambda: _catalog(settings.catalog_url))
    yield _tried("launcher", lambda: _launcher(settings))
    if spark:
        yield _tried("spark", lambda: _spark(settings))
    for name in names:
        yield _tried(f"connection {name}", lambda name=name: _connection(connections, name))  # type: ignore[misc]


def examine_places(settings: Settings) -> Iterator[Finding]:
    """Check only storage: the catalog, the warehouse, the jars."""
    yield _tried("catalog", lambda: _catalog(settings.catalog_url))
    yield _tried("storage", lambda: _storage(settings.warehouse))
    yield _tried("jars", lambda: _jars(settings))


def _tried(check: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(check, True, look())
    except MzShareError as error:
        return Finding(check, False, " ".join(error.message.split()), error.hint)
    except OSError as error:
        return Finding(
            check, False, f"{error.filename or check}: {error.strerror}", "check the file's path and permissions"
        )


def _python() -> str:
    return sys.version.split()[0]


def _java() -> str:
    program = java_program()
    ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    version = (ran.stderr + ran.stdout).strip().partition("\n")[0]
    return f"{program}: {version}"


def _package(name: str) -> str:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        raise TerminalError(f"{name} is not installed", hint="pip install airflow-provider-mzshare") from None
    wanted = PINNED.get(name, found)
    if found != wanted:
        raise TerminalError(f"{name} is {found}, but {wanted} is needed", hint=f"pip install {name}=={wanted}")
    return found


def _jars(settings: Settings) -> str:
    folder = settings.jars or jars.default_folder()
    jars.verify(["spark"], folder)
    return f"{len(jars.pinned(['spark']))} jars in {folder} are the pinned ones"


def _storage(warehouse: str) -> str:
    if not is_local(warehouse):
        _one_writer_only(warehouse)
        return f"{shown_url(warehouse)} lets only one of two writers create a file"
    with _writable_folder(Path(warehouse)) as is_new:
        check_takes_files("the warehouse", warehouse)
        _one_writer_only(warehouse)
    when = " will be created on first use, and" if is_new else ""
    return f"{warehouse}{when} lets only one of two writers create a file"


def _one_writer_only(warehouse: str) -> None:
    if not put_if_absent_works(warehouse):
        where = warehouse if is_local(warehouse) else shown_url(warehouse)
        raise TerminalError(
            f"{where} does not let exactly one of two writers create a file",
            hint="set MZSHARE_WAREHOUSE to a local disk, or to an object store with conditional writes",
        )


@contextmanager
def _writable_folder(folder: Path) -> Iterator[bool]:
    """Create the folder and its missing parents, private; write to it; at the end remove them. True: it is new."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    made: list[Path] = []
    try:
        for path in reversed(missing):
            path.mkdir(mode=0o700)
            made.append(path)
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield bool(missing)
    finally:
        for path in reversed(made):
            path.rmdir()


def _compaction() -> str:
    if not compaction_is_safe():
        raise TerminalError(
            f"deltalake {metadata.version('deltalake')} commits a stale compaction and doubles rows",
            hint="pip install deltalake==1.6.3",
        )
    return "delta-rs refuses a stale compaction"


def _files() -> str:
    return f"{check_files()} files that were put together of columns are the ones that Arrow writes"


def _catalog(url: str) -> str:
    catalog = Catalog(url)
    try:
        if catalog.is_embedded and catalog.revision() is None:
            with _writable_folder(catalog.file.parent):
                return f"{catalog.display_url} will be created on first use"
        catalog.check()
        return f"{catalog.display_url} has schema {catalog.revision()}"
    finally:
        catalog.close()


def _launcher(settings: Settings) -> str:
    launchers = Launchers(settings)
    return f"{launchers.chosen_name}: {launchers.chosen().probe()}"


def _spark(settings: Settings) -> str:
    """Start Spark in the folder where apps run, with the jars that apps use."""
    found = jars.spark_jars(settings.jars or jars.default_folder())
    with _writable_folder(settings.jobs):
        took = probe.try_spark(settings.jobs, found)
    return f"{probe.MASTER} starts and works; it took {took:.1f} s"


def _connection(connections: ConnectionStore, name: str) -> str:
    return reach(connections, name)
