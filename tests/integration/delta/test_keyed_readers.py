"""Keyed tables with deletion vectors, as the readers read them that need no Spark: now, and as of earlier ticks.

Compaction, checkpoint and maintenance come in every order, with ticks between them. tests/apps has the same with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tests.support.keyed_history import History
from tests.support.keyed_load import KeyedLoad
from tests.support.keyed_orders import STEPS, go_through
from tests.support.keyed_readers import EXTENSION, readers
from tests.support.keyed_readers import rows_of as counted
from tests.support.orders import CHANGES, ROWS, orders
from tests.support.reading_page import PAGE, examples, rows_of, run

LOCK = Path(__file__).parents[3] / "requirements.lock"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path, 1)
    yield made
    made.close()


@pytest.mark.parametrize("order", list(permutations(STEPS)), ids="-".join)
def test_all_read_the_same_rows_and_changes_in_every_order(history: History, order: tuple[str, ...]) -> None:
    go_through(history, order)


def test_the_examples_of_the_page_read_what_the_table_holds(tmp_path: Path) -> None:
    path = str(orders(tmp_path))
    duckdb.load_extension(str(EXTENSION))
    found = examples("Tables whose rows change")
    assert len(found) == 3
    for example in found:
        assert rows_of(run(example, path=path)["frame"]) == ROWS, example
    *_, changes = examples("What has changed, with other tools")
    assert rows_of(run(changes, path=path)["frame"]) == CHANGES


def test_the_examples_of_the_page_read_a_file_of_many_batches(tmp_path: Path) -> None:
    """delta-rs by itself takes vectors for those of other rows as soon as a file is more than one batch."""
    load = KeyedLoad(tmp_path, 20_000)
    for _ in range(3):
        load.commit(load.events(200))
    load.close()
    path = str(load.collection.uri)
    duckdb.load_extension(str(EXTENSION))
    wanted = readers(Path(path), ("id", "amount"))["mzshare"](None)
    assert wanted.total() == 20_000
    for example in examples("Tables whose rows change"):
        for _ in range(3):
            frame = run(example, path=path)["frame"]
            found = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.Table.from_pandas(frame)
            assert counted(found, ("id", "amount")) == wanted, example


def test_the_page_names_the_versions_that_are_tested() -> None:
    rows = re.findall(r"^\| [^|]*\((`.*?`)\)[^|]*\| (\d[\d., ]*) \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 4
    lock = LOCK.read_text()
    for named, versions in rows:
        for name, version in zip(re.findall(r"`([\w-]+)`", named), versions.split(", "), strict=True):
            assert re.search(rf"^{name}=={re.escape(version)}\s", lock, re.MULTILINE), (name, version)
