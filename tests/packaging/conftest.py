"""The wheel, built from this checkout and installed where the checkout cannot be seen."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.support.wheel import WheelEnv

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the locked hatchling and return its path."""
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)])
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def wheel_env(wheel: Path) -> Iterator[WheelEnv]:
    """Install the locked packages, hashes checked, and the wheel into a new environment outside the checkout."""
    folder = Path(tempfile.mkdtemp(prefix="mzshare-wheel-"))
    try:
        env = WheelEnv(folder)
        uv, at = find_uv_bin(), ["--python", str(env.python)]
        _run([uv, "venv", "-q", "--python", sys.executable, str(folder / "venv")])
        _run([uv, "pip", "sync", "-q", *at, "--require-hashes", str(ROOT / "requirements.lock")])
        _run([uv, "pip", "install", "-q", *at, "--no-deps", str(wheel)])
        yield env
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stderr
