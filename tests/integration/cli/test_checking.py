"""``mzshare check``: a sentence or a record, an exit code, and what other commands say of a damaged table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from tests.integration.cli.conftest import Cli
from tests.support.filled import Filled


@pytest.fixture
def filled(cli: Cli) -> Iterator[Filled]:
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    catalog.ensure()
    made = Filled(catalog, cli.home)
    source = made.source()
    made.table(source, "t", "n bigint")
    made.feed(source, [{"n": n} for n in range(10)])
    yield made
    catalog.close()


def test_a_whole_and_a_damaged_table_have_their_words_and_exit_codes(cli: Cli, filled: Filled) -> None:
    whole = cli.ok("check", "t", "--deep")
    assert whole.out.startswith("t is whole (4 log entries, 1 files, ")
    assert json.loads(cli.ok("check", "t", "-o", "json").out)["whole"] is True

    (file,) = Path(filled.root).glob("*-data-*/*.parquet")
    os.truncate(file, 50)
    damaged = cli("check", "t")
    problem = f"{file.parent.name}/{file.name} has 50 bytes, but the log says"
    assert damaged.code == 1
    assert damaged.out.startswith("t is damaged (4 log entries")
    assert f"\n  {problem}" in damaged.out
    assert "mzshare sql 'ALTER TABLE t RESNAPSHOT'" in damaged.out
    record = cli("check", "t", "--output", "json")
    assert (record.code, json.loads(record.out)["damages"][0]["file"]) == (1, f"{file.parent.name}/{file.name}")

    line = cli.error("read", "t")
    assert line.startswith(f"error: table t is damaged: {problem}")
    assert "is unexpected" not in line
    status = json.loads(cli.ok("status", "t", "-o", "json").out)
    assert (status[0]["status"], problem in status[0]["reason"]) == ("damaged", True)
    assert "'nope' does not exist" in cli.error("check", "nope")
