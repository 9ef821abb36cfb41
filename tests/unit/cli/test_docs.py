"""The reference names every command, option and setting there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from airflow_provider_mzshare import settings
from airflow_provider_mzshare.cli.main import app

ROOT = Path(__file__).parents[3]
REFERENCE = (ROOT / "docs" / "reference" / "cli.md").read_text()


def commands(group: Any, path: str) -> dict[str, Any]:
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, f"{path} {name}")
        else:
            found[f"{path} {name}"] = command
    return found


def test_every_command_and_option_is_in_the_reference() -> None:
    for path, command in commands(typer.main.get_command(app), "mzshare").items():
        assert f"`{path}" in REFERENCE, path
        for option in {text for parameter in command.params for text in parameter.opts if text.startswith("--")}:
            assert option in REFERENCE, f"{path} {option}"


def test_every_setting_is_in_the_reference() -> None:
    named = set(re.findall(r"MZSHARE_[A-Z_]+", Path(settings.__file__).read_text()))
    assert not [name for name in named if f"`{name}`" not in REFERENCE]
