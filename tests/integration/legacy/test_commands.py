"""The command line by old-style names: what runs under a source's name, a subsource's and a progress name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from tests.integration.cli.conftest import Cli
from tests.support.old_style import OldStyle


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """With the sources ``c``, which has the rows itself, and ``a``, which has a subsource."""
    made = Cli(tmp_path / "home")
    made.ok("catalog", "upgrade")
    made.ok("sql", "ALTER SYSTEM SET force_source_table_syntax = false")
    made.ok("sql", "CREATE SOURCE c FROM LOAD GENERATOR COUNTER ENVELOPE NONE")
    made.ok("sql", "CREATE SOURCE a FROM LOAD GENERATOR AUCTION FOR TABLES (bids AS b)")
    return made


def answer(cli: Cli, *argv: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cli.ok(*argv, "--output", "json").out)
    return found


def test_status_knows_all_names(cli: Cli) -> None:
    assert [row["name"] for row in answer(cli, "status", "--no-lag")] == ["public.c", "public.a"]
    for name, shown in {"c": "public.c", "c_progress": "public.c", "a": "public.b", "b": "public.b"}.items():
        (row,) = answer(cli, "status", name, "--no-lag")
        assert (row["name"], row["status"]) == (shown, "created"), name


def test_reading_by_name(cli: Cli) -> None:
    with Catalog(f"sqlite:///{cli.home / 'catalog.db'}") as catalog:
        OldStyle(catalog).tick("a", {4: 7})
    assert answer(cli, "read", "c") == []
    assert answer(cli, "read", "b") == []
    for name in ("a", "a_progress"):
        (row,) = answer(cli, "read", name)
        assert {key: row[key] for key in ("partition", "offset", "tick")} == {"partition": 4, "offset": 7, "tick": 1}


def test_commands_that_take_a_source_or_a_table(cli: Cli) -> None:
    assert "nothing has run for 'c' yet" in cli.error("logs", "c")
    assert "nothing has run for 'b' yet" in cli.error("logs", "b")
    assert "'b' is a subsource, not a source" in cli.error("start", "b")
    waited = cli("wait", "c", "--timeout", "0.1")
    assert waited.code != 0
    assert "c is not live after 0.1 s" in waited.err
    assert "'a' is a source, not a table" in cli.error("verify", "a")
