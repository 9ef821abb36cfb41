"""What Airflow is told is valid, complete and true."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest
from airflow.sdk import BaseOperator, BaseOperatorLink, BaseSensorOperator

from airflow_provider_mzshare.hooks.settings import PLACES, RUNNING
from airflow_provider_mzshare.provider_info import get_provider_info

ROOT = Path(__file__).parents[3]
INFO = get_provider_info()
OPERATORS = {
    "CreateSourceOperator", "CreateTableFromSourceOperator", "CreateTablesFromSourceOperator", "StartIngestionOperator",
    "StopIngestionOperator", "StartBackfillOperator", "RetireBackfillOperator", "ResumeTableOperator",
    "ResnapshotTableOperator", "DropTableOperator", "DropSourceOperator", "VerifyCutoverOperator", "ReadTableOperator",
    "MzShareSQLOperator", "ReconcileOperator", "MaintainOperator", "MigrateSourceOperator",
    "PlanSwapOperator", "SwapTablesOperator", "DropUnlessLiveOperator", "CheckSQLOperator",
    "ReadChangesOperator", "PushOperator",
}  # fmt: skip


def test_it_is_valid_by_airflows_own_schema() -> None:
    schema = json.loads(Path(airflow.__path__[0], "provider_info.schema.json").read_text())
    jsonschema.validate(INFO, schema)


def test_the_names_are_those_of_the_package() -> None:
    """As the project file says: what is installed may be older."""
    project = (ROOT / "pyproject.toml").read_text()
    (plugin,) = INFO["plugins"]
    place = ":".join(plugin["plugin-class"].rsplit(".", 1))
    for text in (
        f'name = "{INFO["package-name"]}"\n',
        'provider_info = "airflow_provider_mzshare.provider_info:get_provider_info"\n',
        f'[project.entry-points."airflow.plugins"]\n{plugin["name"]} = "{place}"\n',
    ):
        assert text in project


def test_every_path_imports() -> None:
    found = [*_modules("operators"), *_modules("sensors"), *_modules("hooks"), *_modules("triggers")]
    for module in found:
        import_module(module)
    dotted = [INFO["connection-types"][0]["hook-class-name"], INFO["plugins"][0]["plugin-class"], *INFO["extra-links"]]
    dotted += [path for name, path in INFO["asset-uris"][0].items() if name != "schemes"]
    for path in dotted:
        assert _resolved(path), path
    assert all(issubclass(_resolved(path), BaseOperatorLink) for path in INFO["extra-links"])


def test_every_operator_is_listed_and_documents_its_arguments() -> None:
    found = {cls.__name__: cls for cls in _classes("operators", BaseOperator)}
    assert set(found) == OPERATORS
    for cls in (*found.values(), *_classes("sensors", BaseSensorOperator)):
        own = {name for part in _ours(cls) for name in _arguments(part)}
        documented = inspect.getdoc(cls) or ""
        missing = {name for name in own - {"mzshare_conn_id"} if f":param {name}:" not in documented}
        assert not missing, f"{cls.__name__} does not document {missing}"
        assert set(cls.template_fields) <= own, cls.__name__


def test_the_form_of_a_connection_has_the_fields_that_are_read() -> None:
    (connection,) = INFO["connection-types"]
    assert set(connection["conn-fields"]) == {*PLACES, *RUNNING, "sslmode"}
    for field in connection["conn-fields"].values():
        jsonschema.Draft7Validator.check_schema(field["schema"])
        jsonschema.validate(None, field["schema"])


@pytest.mark.parametrize("module", ["airflow_provider_mzshare", "airflow_provider_mzshare.provider_info"])
def test_discovery_loads_neither_airflow_nor_spark(module: str) -> None:
    code = f"import {module}, sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"airflow", "pyspark", "sqlalchemy", "pydantic"} & set(loaded.split())


def _modules(kind: str) -> list[str]:
    return [module for entry in INFO[kind] for module in entry["python-modules"]]


def _classes(kind: str, base: type[Any]) -> Iterator[type[Any]]:
    for module in _modules(kind):
        for name, value in vars(import_module(module)).items():
            ours = inspect.isclass(value) and issubclass(value, base) and value.__module__ == module
            if ours and not name.startswith("_"):
                yield value


def _ours(cls: type[Any]) -> list[type[Any]]:
    return [part for part in cls.__mro__ if part.__module__.startswith("airflow_provider_mzshare")]


def _arguments(cls: type[Any]) -> set[str]:
    if "__init__" not in vars(cls):
        return set()
    parameters = inspect.signature(cls.__init__).parameters.values()
    named = [p for p in parameters if p.name != "self" and p.kind is not inspect.Parameter.VAR_KEYWORD]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in named), cls
    return {p.name for p in named}


def _resolved(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
