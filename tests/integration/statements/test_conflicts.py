"""Somebody else changes what a statement was checked against: it is told to run again, and nothing was done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.errors import MzShareError, NameTaken
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

TABLE = "CREATE TABLE t FROM SOURCE a (REFERENCE bids);"


def overtaken(sql: Session, by: str) -> Catalog:
    """A catalog in which somebody else runs ``by`` right after upstreams were asked."""

    class Overtaken(Catalog):
        @contextmanager
        def write(self) -> Iterator[Any]:
            execute_script(sql.catalog, by, sql.connections)
            with super().write() as session:
                yield session

    return Overtaken(sql.catalog.url)


@pytest.mark.parametrize(
    ("text", "by"),
    [
        (TABLE, "DROP SOURCE a; CREATE SOURCE a FROM LOAD GENERATOR AUCTION (SEED 9)"),
        (TABLE, "ALTER SOURCE a RENAME TO b; CREATE SOURCE a FROM LOAD GENERATOR COUNTER"),
        ("CREATE TABLE IF NOT EXISTS there FROM SOURCE c", "DROP TABLE there"),
        ("CREATE SOURCE IF NOT EXISTS c FROM LOAD GENERATOR COUNTER", "DROP SOURCE c CASCADE"),
        ("ALTER SOURCE a REFRESH REFERENCES", "DROP SOURCE a"),
    ],
)
def test_a_statement_that_was_overtaken_is_to_be_run_again(sql: Session, text: str, by: str) -> None:
    sql.run(AUCTION + "CREATE SOURCE c FROM LOAD GENERATOR COUNTER; CREATE TABLE there FROM SOURCE c;")
    with overtaken(sql, by) as catalog, pytest.raises(ChangedMeanwhile, match="while this ran") as raised:
        execute_script(catalog, f"BEGIN; CREATE SCHEMA other; {text}; COMMIT", sql.connections)
    assert raised.value.hint == "run the same statement again"
    assert "other" not in {row["name"] for row in sql.rows("SHOW SCHEMAS")}, "all or nothing"


def test_many_at_once_get_one_winner_each_and_no_damage(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(AUCTION + TABLE + "CREATE TABLE u FROM SOURCE a (REFERENCE users);")
    sql.tick({4: 1}, source="a")
    outcomes: list[str] = []
    surprises: list[BaseException] = []
    start = threading.Barrier(6)

    def work(number: int) -> None:
        with Catalog(sql.catalog.url) as catalog:
            start.wait()
            name = f"n{number % 2}"
            for text in (
                "CREATE SCHEMA same",
                "ALTER TABLE t SWAP WITH u",
                f"CREATE TABLE {name} FROM SOURCE a (REFERENCE bids)",
                f"ALTER TABLE {name} RENAME TO m",
            ):
                try:
                    execute_script(catalog, text, sql.connections)
                    outcomes.append(text.split("FROM")[0].strip())
                except MzShareError:
                    pass
                except BaseException as error:
                    surprises.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not surprises, surprises
    assert outcomes.count("CREATE SCHEMA same") == 1
    assert outcomes.count("ALTER TABLE t SWAP WITH u") == 6
    assert sql.table("t").id == "u2", "six swaps are none"
    assert len([one for one in outcomes if "RENAME TO m" in one]) == 1
    assert len({row["name"] for row in sql.rows("SHOW TABLES")}) == len(sql.rows("SHOW TABLES"))
    with pytest.raises(NameTaken):
        sql.run("CREATE TABLE m FROM SOURCE a (REFERENCE bids)")
