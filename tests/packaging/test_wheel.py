"""The wheel alone is enough for a user: all of it is there, and it works without the checkout."""

from __future__ import annotations

import configparser
import re
import zipfile
from pathlib import Path

from airflow_provider_mzshare import __version__
from tests.support.wheel import WheelEnv

ROOT = Path(__file__).parents[2]
MOVED = {"spark_apps": "airflow_provider_mzshare/spark_apps", "dags": "airflow_provider_mzshare/example_dags"}


def test_the_wheel_carries_the_package_the_spark_apps_and_the_dags(wheel: Path) -> None:
    carried = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(path.relative_to(ROOT)) for path in _files(ROOT / "airflow_provider_mzshare")}
    for folder, inside in MOVED.items():
        wanted |= {f"{inside}/{path.relative_to(ROOT / folder)}" for path in _files(ROOT / folder)}
    assert not wanted - carried
    assert "airflow_provider_mzshare/spark_apps/ingest.py" in carried
    assert {"airflow_provider_mzshare/py.typed", "airflow_provider_mzshare/compute/jars.json"} <= carried
    assert any(re.search(r"/migrations/versions/v\w+\.py$", name) for name in carried)


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    info = f"airflow_provider_mzshare-{__version__}.dist-info"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"airflow_provider_mzshare", info}
    assert f"{info}/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_registers_the_command_the_provider_and_the_dialect(wheel: Path) -> None:
    points = configparser.ConfigParser()
    points.read_string(_member(wheel, "entry_points.txt"))
    assert points["console_scripts"]["mzshare"] == "airflow_provider_mzshare.cli.main:main"
    assert "mzshare" in points["sqlglot.dialects"]
    assert points["apache_airflow_provider"]["provider_info"].endswith(":get_provider_info")
    assert "mzshare" in points["airflow.plugins"]
    assert "\nRequires-Python: >=3.10\n" in _member(wheel, "METADATA")


def test_the_installed_command_works_outside_the_checkout(wheel_env: WheelEnv) -> None:
    assert "Usage: mzshare" in wheel_env.run(["mzshare", "--help"])
    place = wheel_env.run(["python", "-c", "import airflow_provider_mzshare as p; print(p.__file__, p.__version__)"])
    file, version = place.split()
    assert Path(file).is_relative_to(wheel_env.folder)
    assert version == __version__


def test_the_installed_package_checks_its_jars(wheel_env: WheelEnv, jars: Path) -> None:
    assert "are the pinned ones" in wheel_env.run(["mzshare", "jars", "--check"], MZSHARE_JARS=str(jars))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def _member(wheel: Path, name: str) -> str:
    archive = zipfile.ZipFile(wheel)
    (full,) = (one for one in archive.namelist() if one.endswith(f".dist-info/{name}"))
    return archive.read(full).decode()
