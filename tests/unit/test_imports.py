"""What importing the package loads, and what it can do where Airflow or Spark cannot be imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_mzshare"

REFUSE = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ImportError(f"{{name}} must not be imported here")
sys.meta_path.insert(0, Refuse())
"""

ALLOWED_IN_FANOUT = {"pyarrow", "numpy", *sys.stdlib_module_names}
OPTIONAL_IN_FANOUT = {"fastjson.py": "msgspec", "json_changes.py": "msgspec"}
"""Used where it is installed, and done without elsewhere."""


def test_importing_the_package_loads_neither_airflow_nor_spark() -> None:
    loaded = _run("import airflow_provider_mzshare, sys; print(*{name.partition('.')[0] for name in sys.modules})")
    assert not {"airflow", "pyspark", "sqlalchemy", "deltalake"} & set(loaded.split())


@pytest.mark.parametrize(
    ("layer", "refused"),
    [
        ("core", {"airflow", "pyspark"}),
        ("connectors", {"airflow"}),
        ("formats", {"airflow", "pyspark", "sqlalchemy", "deltalake"}),
        ("storage", {"airflow"}),
        ("compute", {"airflow"}),
        ("control", {"airflow", "pyspark"}),
        ("embedded", {"airflow", "pyspark"}),
    ],
)
def test_all_of_a_layer_imports_without_what_is_above_it(layer: str, refused: set[str]) -> None:
    modules = _modules(PACKAGE / layer)
    assert modules
    assert _run(REFUSE.format(refused=refused) + _import_all(modules)).split() == modules


def test_the_help_of_the_command_line_needs_neither_airflow_nor_spark() -> None:
    start = "from airflow_provider_mzshare.cli.main import main\nsys.argv = ['mzshare', '--help']\nmain()"
    assert "Usage" in _run(REFUSE.format(refused={"airflow", "pyspark"}) + start)


def test_the_fan_out_imports_where_only_arrow_is_installed() -> None:
    """It travels to executors whose Python has pyarrow and numpy, and not our other dependencies."""
    modules = _modules(PACKAGE / "storage" / "fanout") + _modules(PACKAGE / "formats")
    others = {"airflow", "pyspark", "pydantic", "sqlalchemy", "deltalake", "confluent_kafka", "psutil", "pandas"}
    others |= set(OPTIONAL_IN_FANOUT.values())
    assert _run(REFUSE.format(refused=others) + _import_all(modules)).split() == modules


def test_journals_are_read_where_only_arrow_is_installed() -> None:
    """What reads them travels to executors too."""
    modules = _modules(PACKAGE / "journal")
    for file in (PACKAGE / "journal").rglob("*.py"):
        for name in _imported_names(file):
            fine = name.partition(".")[0] in {"pyarrow", *sys.stdlib_module_names} or name.startswith(
                ("airflow_provider_mzshare.journal", "airflow_provider_mzshare.errors")
            )
            assert fine, f"{file.relative_to(ROOT)} imports {name}"
    others = {"airflow", "pyspark", "pydantic", "sqlalchemy", "deltalake", "obstore", "pandas"}
    assert _run(REFUSE.format(refused=others) + _import_all(modules)).split() == modules


def test_the_fan_out_names_nothing_but_arrow_numpy_and_plain_types() -> None:
    ours = tuple(
        f"airflow_provider_mzshare.{name}"
        for name in (
            "storage.fanout",
            "formats",
            "connectors.places",
            "connectors.records",
            "connectors.record_times",
            "envelopes.base",
            "core.arrow_types",
            "core.ids",
            "core.registry",
            "core.schema",
            "errors",
        )
    )
    travels = [file for file in (PACKAGE / "formats").rglob("*.py") if file.name != "registry.py"]
    for file in [*travels, *(PACKAGE / "storage" / "fanout").rglob("*.py")]:
        for name in _imported_names(file):
            allowed = ALLOWED_IN_FANOUT | {OPTIONAL_IN_FANOUT.get(file.name)}
            fine = name.partition(".")[0] in allowed or name.startswith(ours)
            assert fine, f"{file.relative_to(ROOT)} imports {name}"


def _imported_names(file: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _modules(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*.py") if "migrations" not in file.parts]
    dotted = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return sorted(name.removesuffix(".__init__") for name in dotted)


def _import_all(modules: list[str]) -> str:
    return f"import importlib\nfor name in {modules!r}:\n    importlib.import_module(name)\n    print(name)\n"


def _run(code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
