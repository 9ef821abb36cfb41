"""Reading by name what is no table: a source's progress, and names that change hands while they are read."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items, legacy_sources
from airflow_provider_mzshare.control.catalog.queries.reads import ReadPoint
from airflow_provider_mzshare.control.lifecycle import read_table as reading
from airflow_provider_mzshare.control.lifecycle.read_table import Query, count_rows, read_table
from airflow_provider_mzshare.control.statements.blue_green import swap_once
from airflow_provider_mzshare.control.views.view_errors import UnknownRelation
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from tests.support.filled import Filled
from tests.support.legacy import add_output
from tests.support.waiting import wait_until


def rows(filled: Filled, name: str, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(filled.catalog, filled.root, name, **asked).to_pylist()
    return found


def test_names_of_sources_read_their_progress(filled: Filled, catalog: Catalog) -> None:
    source = filled.source()
    filled.table(source, "a", "id bigint")
    assert rows(filled, "s") == []
    first = filled.feed(source, [{"id": 1}, {"id": 2}])
    last = filled.feed(source, [{"id": 3}])
    assert rows(filled, "s") == [{"partition": 0, "offset": 3, "tick": 2, "mz_timestamp": last.mz_timestamp}]
    assert rows(filled, "s", as_of_ms=first.mz_timestamp, query=Query(columns=["offset"])) == [{"offset": 2}]
    assert count_rows(catalog, filled.root, "s") == 1
    assert count_rows(catalog, filled.root, "a") == 3
    for asked, words in (
        ({"tick": 7}, "no committed tick at tick 7"),
        ({"query": Query(errors=True)}, "progress s has no errors"),
        ({"query": Query(with_system_columns=True)}, "progress s has no system columns"),
        ({"query": Query(columns=["x"])}, "there is no column x"),
    ):
        with pytest.raises(NotReadable, match=words):
            rows(filled, "s", **asked)  # type: ignore[arg-type]


def test_an_old_style_source_reads_its_output_and_its_progress_name_its_progress(filled: Filled) -> None:
    source = filled.source("old")
    with filled.catalog.write() as session:
        add_output(session, source, TableSpec(reference="t", format="text"))
        legacy_sources.add_progress(session, source, ("public", "old_progress"))
    filled.feed(source, [{"id": 1}])
    assert rows(filled, "old") == [{"data": '{"id": 1}'}]
    assert rows(filled, "old_progress", query=Query(columns=["offset", "tick"])) == [{"offset": 1, "tick": 1}]
    assert count_rows(filled.catalog, filled.root, "old") == 1


def test_a_name_that_is_not_there_is_told_with_what_is_near(filled: Filled) -> None:
    filled.table(filled.source(), "orders", "id bigint")
    with pytest.raises(UnknownRelation, match="there is orders"):
        rows(filled, "order_s")


def test_readers_of_a_name_see_one_table_or_the_other_during_all_swaps(filled: Filled, catalog: Catalog) -> None:
    """Two tables with other columns on the same records: each answer has the columns and all rows of one of them."""
    source = filled.source()
    old = filled.table(source, "orders", "id bigint, note text")
    new = filled.table(source, "orders__next", "id bigint, amount numeric(12,2)")
    filled.feed(source, [{"id": n, "note": f"n{n}", "amount": n} for n in range(50)])
    wanted = {"id,note", "id,amount"}
    seen: set[str] = set()
    wrong: list[object] = []
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            try:
                found = read_table(catalog, filled.root, "orders")
            except Exception as error:
                wrong.append(error)
                return
            seen.add(",".join(found.schema.names))
            if sorted(found.column("id").to_pylist()) != list(range(50)):
                wrong.append(found)

    readers = [threading.Thread(target=poll) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(40):
        new_id = new if number % 2 == 0 else old
        swap_once(catalog, "orders", "orders__next", new_id=new_id)
    wait_until(lambda: seen == wanted or bool(wrong), 30, "readers that have seen both")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert seen == wanted


def test_a_table_that_is_swapped_and_dropped_while_it_is_read_is_read_anew(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the reader opens a file of the old one, the name is the new one's and the files are gone."""
    source = filled.source()
    old = filled.table(source, "orders", "id bigint")
    new = filled.table(source, "orders__next", "id bigint, n bigint")
    filled.feed(source, [{"id": 1, "n": 2}])
    read = reading._read

    def late(warehouse: str, point: ReadPoint, query: Query) -> Any:
        if point.table_id == old and swap_once(filled.catalog, "orders", "orders__next", new_id=new).changed:
            with filled.catalog.write() as session:
                items.drop_table(session, old)
            shutil.rmtree(collection_uri(warehouse, point.data_path))
        return read(warehouse, point, query)

    monkeypatch.setattr(reading, "_read", late)
    assert rows(filled, "orders") == [{"id": 1, "n": 2}]
    shutil.rmtree(filled.root)
    with pytest.raises(NotReadable):  # what is lost for good is told
        rows(filled, "orders")
