"""Launchers are chosen by name, in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.launchers.process import ProcessLauncher
from airflow_provider_mzshare.compute.launchers.registry import LAUNCHERS, Launchers, UnknownLauncher
from airflow_provider_mzshare.settings import Settings
from tests.support.plugins import LAUNCHER, installed

PACKAGE = Path(__file__).parents[3] / "airflow_provider_mzshare"
REGISTRY = PACKAGE / "compute" / "launchers" / "registry.py"


def test_without_a_setting_apps_are_processes() -> None:
    chosen = Launchers(Settings.from_environment({}))
    assert chosen.chosen_name == "process"
    assert isinstance(chosen.chosen(), ProcessLauncher)
    assert chosen.chosen() is chosen.get("process") is chosen.runs_of("process")


def test_a_setting_chooses_for_new_jobs_and_stored_names_choose_for_theirs() -> None:
    chosen = Launchers(Settings.from_environment({"MZSHARE_LAUNCHER": "supervised"}))
    with installed(LAUNCHER, LAUNCHERS):
        assert type(chosen.chosen()).__name__ == "SupervisedLauncher"
        assert isinstance(chosen.runs_of("process"), ProcessLauncher)


def test_what_nobody_registered_is_one_clear_error() -> None:
    chosen = Launchers(Settings.from_environment({"MZSHARE_LAUNCHER": "pods"}))
    with pytest.raises(UnknownLauncher, match="there is no launcher 'pods' here; there are: process") as caught:
        chosen.chosen()
    assert caught.value.name == "pods"
    assert "process" in caught.value.known
    assert "MZSHARE_LAUNCHER" in caught.value.hint


def test_no_place_but_the_registry_knows_a_launcher_by_its_name_or_its_module() -> None:
    modules = {LAUNCHERS.targets[name].partition(":")[0] for name in LAUNCHERS.own}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in modules, f"{file}:{node.lineno} imports a launcher"
            if isinstance(node, ast.Compare) and "launcher" in ast.unparse(node).lower() and file != REGISTRY:
                told = [one for one in ast.walk(node) if isinstance(one, ast.Constant) and one.value in LAUNCHERS.own]
                assert not told, f"{file}:{node.lineno} asks for a launcher by name"
