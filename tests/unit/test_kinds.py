"""A kind of source is one folder and one line: nobody else names it, and it knows nobody else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.registry import CONNECTORS
from tests.support.plugins import CONNECTOR, installed

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_mzshare"
CONNECTORS_FOLDER = "airflow_provider_mzshare.connectors"
FOLDERS = sorted(path.parent.name for path in (PACKAGE / "connectors").glob("*/kind.py"))

SERVERS = ("demo/", "embedded/")
"""They start a broker of their own, which is no matter of kinds."""

NAMING = {
    "connectors/registry.py": "the lines of registration",
    "compute/jars.py": "jars of the embedded broker, which `mzshare setup` fetches",
    **dict.fromkeys(
        (
            "control/catalog/database/journal_models.py",
            "control/catalog/database/migrations/versions/v0020_journals.py",
            "control/catalog/database/migrations/versions/v0021_batches_by_place.py",
            "control/catalog/database/migrations/versions/v0021_batches_by_place.py",
            "control/catalog/log/journal_statements.py",
            "control/catalog/log/journal_statements.py",
            "control/catalog/log/journals.py",
        ),
        "a column of the catalog that is called so, too",
    ),
    **dict.fromkeys(
        (
            "control/catalog/database/databases.py",
            "control/statements/handlers/select.py",
            "control/views/admitted.py",
            "control/views/queries.py",
            "settings.py",
        ),
        "the catalog's database, or the dialect of views",
    ),
    "connectors/connections.py": "Airflow's name of a type of connections",
    **dict.fromkeys(
        ("envelopes/postgres.py", "envelopes/registry.py", "formats/postgres.py", "formats/registry.py"),
        "the name of its format and of its envelope",
    ),
    "hooks/definitions.py": "the kind of those who say nothing of a kind: operators had no other",
}
"""Where a kind's name may stand outside its folder, and why."""


def test_every_folder_is_a_kind_and_every_kind_a_folder() -> None:
    assert sorted(CONNECTORS.own) == FOLDERS
    for name in FOLDERS:
        assert CONNECTORS.get(name).kind == name


def test_nobody_imports_from_a_connectors_folder_but_itself() -> None:
    for file, tree in _modules():
        if file.startswith(SERVERS):
            continue
        for module in _imports(tree):
            folder = module.removeprefix(f"{CONNECTORS_FOLDER}.").partition(".")[0]
            inside = module.startswith(CONNECTORS_FOLDER) and folder in FOLDERS
            assert not inside or file.startswith(f"connectors/{folder}/"), f"{file} imports {module}"


def test_connectors_know_nobody_above_them() -> None:
    above = ("control", "formats", "envelopes", "storage", "compute", "cli", "hooks", "operators", "embedded")
    for file, tree in _modules():
        if file.startswith("connectors/"):
            for module in _imports(tree):
                layer = module.removeprefix("airflow_provider_mzshare.").partition(".")[0]
                assert layer not in above or module == layer, f"{file} imports {module}"


def test_nobody_names_a_kind_outside_its_folder() -> None:
    """By its name, its words or its type: who would compare with one has to write it."""
    kinds = [CONNECTORS.get(name) for name in FOLDERS]
    names = {text for kind in kinds for text in (kind.kind, kind.words, kind.kind.replace("_", "-"))}
    found: dict[str, set[str]] = {}
    for file, tree in _modules():
        own = file.startswith(tuple(f"connectors/{folder}/" for folder in FOLDERS))
        if own or file.startswith(SERVERS):
            continue
        if written := {text for text in _texts(tree) if any(text == name or f"'{name}'" in text for name in names)}:
            found[file] = written
    assert found.keys() == NAMING.keys(), found


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("if spec.kind == 'kafka': ...", True),
        ("query = f\"WHERE kind = 'kafka' AND {x}\"", True),
        ("match kind:\n    case 'load_generator': ...", True),
        ('"""Reads from \'kafka\'."""\nx = 1', False),
        ("x = 'kafkaesque'", False),
    ],
)
def test_the_look_for_names_finds_them(code: str, names: bool) -> None:
    found = [t for t in _texts(ast.parse(code)) if t in ("kafka", "load_generator") or "'kafka'" in t]
    assert bool(found) == names


def test_a_kind_of_another_package_is_there_as_soon_as_it_is_installed() -> None:
    assert "numbered_lines" not in CONNECTORS
    with installed(CONNECTOR, CONNECTORS):
        assert [*CONNECTORS] == ["kafka", "load_generator", "journal", "postgres", "numbered_lines"]
        assert CONNECTORS.get("numbered_lines").words == "NUMBERED LINES"
    assert "numbered_lines" not in CONNECTORS


@cache
def _modules() -> Sequence[tuple[str, ast.Module]]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [(file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text())) for file in files]


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _texts(tree: ast.AST) -> Iterator[str]:
    """Strings that are no docstrings."""
    told = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value
