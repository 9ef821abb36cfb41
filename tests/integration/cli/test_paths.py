"""Where a table is, and how others read it: the examples of the page are run as they stand there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pyarrow.dataset
import pytest
from deltalake import DeltaTable

from airflow_provider_mzshare import connect
from airflow_provider_mzshare.control.catalog import Catalog
from tests.integration.cli.conftest import Cli
from tests.support.filled import Filled
from tests.support.postgres import Postgres
from tests.support.reading_page import examples, rows_of, run

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
    assert answer.err == "note: nothing has been written to this table yet\n"


@pytest.mark.parametrize(("section", "count"), [("pandas", 2), ("DuckDB", 2), ("Polars", 2)])
def test_the_examples_of_the_page_read_what_mzshare_reads(cli: Cli, filled: Filled, section: str, count: int) -> None:
    path, found = cli.ok("path", "orders").out.strip(), examples(section)
    assert len(found) == count
    with mock.patch.dict(os.environ, cli.environment), connect() as mz:
        for example in found:
            tick = 3 if "tick=3" in example else None
            expected = mz.read("orders", tick=tick, columns=["id", "amount"]).to_pylist()
            assert len(expected) == (tick or TICKS)
            assert rows_of(run(example, path=path)["frame"]) == sorted(tuple(row.values()) for row in expected), example


def test_the_example_for_python_counts_the_rows(cli: Cli, filled: Filled) -> None:
    (example,) = examples("From Python")
    with mock.patch.dict(os.environ, cli.environment):
        assert run(example)["count"] == TICKS


def test_a_sql_client_sees_where_tables_are(cli: Cli, filled: Filled) -> None:
    on_sqlite, _ = examples("A SQL client")
    ((name, location),) = run(on_sqlite, home=cli.home)["rows"]
    assert (name, f"{cli.home}/warehouse/{location}") == ("orders", cli.ok("path", "orders").out.strip())


def test_a_sql_client_sees_them_on_postgres_too(postgres: Postgres, postgres_template: str, tmp_path: Path) -> None:
    _, on_postgres = examples("A SQL client")
    with postgres.database(template=postgres_template) as url, Catalog(url) as catalog:
        made = Filled(catalog, tmp_path)
        made.table(made.source(), "orders", "id bigint")
        (found,) = run(on_postgres, server=url.replace("+psycopg", ""))["rows"]
    assert found[0] == "orders"
    assert found[1]


def test_the_files_of_a_folder_are_more_than_the_table(cli: Cli, filled: Filled) -> None:
    path = cli.ok("path", "orders").out.strip()
    DeltaTable(path).optimize.compact()
    assert DeltaTable(path).to_pyarrow_dataset().count_rows() == TICKS
    assert pyarrow.dataset.dataset(sorted(map(str, Path(path).glob("*.parquet")))).count_rows() > TICKS
