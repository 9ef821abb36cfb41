"""Packages of the tests' own that register parts of mzshare by entry points, as installed ones do."""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_mzshare.core.registry import Registry

ROOT = Path(__file__).parents[2]
FORMAT = ROOT / "tests" / "plugins" / "format"
"""``piped``."""
CONNECTOR = ROOT / "tests" / "plugins" / "connector"
"""``numbered_lines``."""
ENVELOPE = ROOT / "tests" / "plugins" / "envelope"
"""``adding``."""
LAUNCHER = ROOT / "tests" / "plugins" / "launcher"
"""``supervised``."""


@contextmanager
def installed(package: Path, registry: Registry[Any]) -> Iterator[None]:
    """In this process: the registry looks at what is installed anew, and forgets it afterwards."""
    _forget(registry)
    sys.path.insert(0, str(package))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(package))
        _forget(registry)


def _forget(registry: Registry[Any]) -> None:
    vars(registry).pop("targets", None)
    for name in set(registry._loaded) - set(registry.own):
        del registry._loaded[name]


def python_with(package: Path, folder: Path) -> Path:
    """A Python in ``folder`` that has all that this one has, and the package besides."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(ROOT), str(package)]
    (site / "tests.pth").write_text("\n".join(dict.fromkeys(paths)) + "\n")
    return folder / "bin" / "python"
