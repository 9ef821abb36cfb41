"""Small modules and small functions, and text that knows nothing of the machine it was written on."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("airflow_provider_mzshare", "spark_apps", "dags", "tools")
MODULE_LINES, FUNCTION_LINES = 400, 40


def test_modules_are_small() -> None:
    long = {name: count for name, text in _code() if (count := len(text.splitlines())) > MODULE_LINES}
    assert not long, f"more than {MODULE_LINES} lines: {long}"


def test_functions_are_small() -> None:
    long = [
        f"{name}:{node.lineno} {node.name} ({node.end_lineno - node.lineno + 1})"
        for name, text in _code()
        if "/migrations/versions/" not in name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long, f"more than {FUNCTION_LINES} lines: {long}"


def test_every_module_says_its_job() -> None:
    silent = [name for name, text in _code() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert not silent


def test_no_file_names_a_registry_host() -> None:
    hosts = re.compile(r"https?://[^\s'\"]*(?:pypi|pythonhosted|maven|artifactory|nexus)[^\s'\"]*", re.IGNORECASE)
    for path in _project_files():
        assert not (found := hosts.findall(path.read_text(errors="ignore"))), f"{path}: {found[:3]}"


def _code() -> Iterator[tuple[str, str]]:
    for folder in CODE:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), file.read_text()


def _project_files() -> list[Path]:
    """What git has or would take; all of the checkout but the usual folders where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]
    skipped = {".venv", ".cache", ".git"}
    return [path for path in ROOT.rglob("*") if path.is_file() and not skipped & set(path.relative_to(ROOT).parts)]
