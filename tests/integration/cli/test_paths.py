"""Where a table is, and how others read it: the examples of the page are run as they stand there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.dataset
import pytest
from deltalake import DeltaTable

from airflow_provider_mzshare.control.catalog import Catalog
from tests.integration.cli.conftest import Cli
from tests.support.filled import Filled
from tests.support.reading_page import examples, why_not

TICKS = 4


@pytest.fixture
def filled(cli: Cli) -> Iterator[Filled]:
    """``orders`` has a row for each tick."""
    cli.home.mkdir()
    with Catalog(f"sqlite:///{cli.home / 'catalog.db'}") as catalog:
        catalog.upgrade()
        made = Filled(catalog, cli.home)
        made.table(source := made.source(), "orders", "id bigint, amount bigint")
        for number in range(TICKS):
            made.feed(source, [{"id": number, "amount": 7}])
        made.feed(source, [{"id": "x"}])
        yield made


def test_a_path_is_that_of_the_current_generation_and_told_by_all(cli: Cli, filled: Filled) -> None:
    path = cli.ok("path", "orders").out.strip()
    assert path.startswith(f"{cli.home}/warehouse/")
    assert DeltaTable(path).to_pyarrow_dataset().count_rows() == TICKS
    errors = cli.ok("path", "orders", "--errors").out.strip()
    assert DeltaTable(errors).to_pyarrow_dataset().count_rows() == 1
    (row,) = cli.ok("status", "orders", "--no-lag", "-o", "json").json
    assert row["location"] == path
    ((relative,),) = (
        tuple(found.values()) for found in cli.ok("sql", "SELECT location FROM mz_tables", "-o", "json").json[0]["rows"]
    )
    assert f"{cli.home}/warehouse/{relative}" == path
    assert "does not exist" in cli.error("path", "nobody")


def test_a_table_that_nothing_was_written_to_is_told(cli: Cli, filled: Filled) -> None:
    filled.table(filled.source("other"), "new", "id bigint")
    answer = cli.ok("path", "new")
    assert not Path(answer.out.strip()).exists()
    assert answer.err == "note: nothing has been written to it yet\n"


def test_the_examples_of_the_page_read_what_is_there(cli: Cli, filled: Filled) -> None:
    path, ran = cli.ok("path", "orders").out.strip(), 0
    for example in examples():
        if "spark." in example:  # in tests/apps
            continue
        if why := why_not(example):
            assert not find_spec(example.split()[1]), f"it can be run now: {why}"
            continue
        names: dict[str, Any] = {"path": path}
        with mock.patch.dict(os.environ, cli.environment):
            exec(example, names)
        found = names["count"] if "count" in names else len(names["frame"])
        assert found == TICKS, example
        ran += 1
    assert ran == 3


def test_the_files_of_a_folder_are_more_than_the_table(cli: Cli, filled: Filled) -> None:
    path = cli.ok("path", "orders").out.strip()
    DeltaTable(path).optimize.compact()
    assert DeltaTable(path).to_pyarrow_dataset().count_rows() == TICKS
    assert pyarrow.dataset.dataset(sorted(map(str, Path(path).glob("*.parquet")))).count_rows() > TICKS
