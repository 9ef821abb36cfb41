"""A catalog that names a connector or an envelope which is not installed here: its own things say so, others go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.catalog.objects import items
from tests.integration.cli.conftest import Cli
from tests.support.plugins import CONNECTOR, installed

SCENE = (
    "CREATE SOURCE house FROM LOAD GENERATOR AUCTION (UP TO 10); CREATE TABLE bids FROM SOURCE house (REFERENCE bids);"
)


@pytest.fixture
def without(cli: Cli, tmp_path: Path) -> Cli:
    """A source and a table of a package that was there when they were made."""
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "id").write_text("lines")
    (folder / "0.lines").write_text("0 a\n1 b\n")
    source = f"CREATE SOURCE lines FROM NUMBERED LINES (FOLDER '{folder}');"
    with installed(CONNECTOR, CONNECTORS):
        made = cli("sql", SCENE + source + "CREATE TABLE raw FROM SOURCE lines FORMAT TEXT")
        assert made.code == 0, made.err
    return cli


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("status", "-o", "json"),
        ("sql", "SHOW SOURCES"),
        ("sql", "SHOW TABLES"),
        ("status", "lines"),
        ("status", "raw"),
        ("sql", "SELECT name FROM mz_sources"),
        ("sql", "SELECT * FROM mz_source_exports"),
        ("sql", "SHOW CREATE TABLE raw"),
        ("sql", "CREATE TABLE users FROM SOURCE house (REFERENCE users)"),
        ("sql", "ALTER SOURCE lines RENAME TO rows"),
        ("sql", "ALTER SOURCE house RENAME TO home"),
        ("sql", "EXPLAIN DROP SOURCE lines CASCADE"),
        ("sql", "DROP SOURCE lines CASCADE"),
        ("reconcile", "--dry-run"),
        ("maintain",),
    ],
    ids=" ".join,
)
def test_the_rest_goes_on(without: Cli, command: tuple[str, ...]) -> None:
    answer = without(*command)
    assert answer.code == 0, answer.err


def test_it_is_listed_and_keeps_its_statement(without: Cli) -> None:
    shown = without("sql", "SHOW SOURCES", "-o", "json")
    (listed,) = shown.json
    assert [row["kind"] for row in listed["rows"]] == ["load_generator", "numbered_lines"]  # type: ignore[attr-defined]
    assert "there is no connector 'numbered_lines' here" in without("status", "lines").out
    kept = without("sql", "SELECT create_sql FROM mz_sources WHERE name = 'lines'", "-o", "json").json
    assert "FROM NUMBERED LINES (FOLDER" in str(kept)


@pytest.mark.parametrize(
    "command", [("start", "lines"), ("read", "raw"), ("sql", "SHOW CREATE SOURCE lines")], ids=" ".join
)
def test_what_is_of_it_says_what_is_missing(without: Cli, command: tuple[str, ...]) -> None:
    answer = without(*command)
    assert answer.code != 0
    assert "there is no connector 'numbered_lines' here; there are: kafka, load_generator" in answer.err
    assert "install the package" in answer.err


def test_an_envelope_that_is_not_here_stops_nobody_else(cli: Cli) -> None:
    assert cli("sql", SCENE).code == 0
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.write() as session:
        table = items.find_table(session, ("public", "bids"))
        stored = table.spec.model_copy(update={"envelope": "keyed"}).model_dump_json()
        session.execute(update(TableRow).where(TableRow.id == table.id).values(spec=stored))
    catalog.close()
    for command in (("status",), ("sql", "SHOW TABLES"), ("sql", "CREATE TABLE t FROM SOURCE house (REFERENCE users)")):
        answer = cli(*command)
        assert answer.code == 0, answer.err
    assert "ENVELOPE KEYED" in cli("sql", "SHOW CREATE TABLE bids").out
