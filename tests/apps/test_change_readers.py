"""The change feeds that Delta's readers know, beside our change stream: added up over what users see, the same.

Tables of both writers, with ticks that have no rows to take away, compactions between ticks, and rows that come again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog.database.models import CommitRow
from airflow_provider_mzshare.control.lifecycle.change_stream import Asked
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.rows import SPARKS_LIMIT
from tests.support.change_streams import Changes, changes_of
from tests.support.keyed_cases import PLAIN, Step, assemble
from tests.support.keyed_readers import feeds
from tests.support.keyed_scene import KeyedScene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
ROW = ("n", "name", "key")


def put(key: str, n: int | None) -> Step:
    """None takes the key's row away."""
    return Step(0, key.encode(), None if n is None else b'{"n": %d, "name": "name of %s"}' % (n, key.encode()))


TICKS = [
    [put(key, 1) for key in "abcdef"],
    [put("a", 2), put("g", 1), put("b", None)],
    [put("h", 1), put("i", 1)],  # Only new rows: nothing that went.
    [put("a", 2), put("c", 1)],  # The same rows, written anew.
    [put("b", 1), put("a", None), put("a", 3)],
    [put("d", None), put("e", None)],  # Only rows that go.
    [put("j", 1)],
    [put("d", 1), put("d", None), put("x", 1), put("x", None)],
    [put("a", 2), put("e", 1), put("nobody", None)],
]
COMPACTED_AFTER = (3, 7)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    made = KeyedScene(tmp_path, assemble(PLAIN, TICKS), monkeypatch.setattr)
    yield made
    made.close()


def compacted(scene: KeyedScene, name: CollectionId) -> None:
    """As the app does it that commits the ticks."""
    collection, states = Collection.open(scene.root, name), scene.app.states
    rewritten = states.rewrite(collection, min_files=2)
    assert rewritten is not None
    states.put_rewritten(collection, rewritten)


def times_of(scene: KeyedScene, name: CollectionId) -> Mapping[int, int]:
    """The times of the versions that ticks have made."""
    query = select(CommitRow.version, CommitRow.mz_timestamp).where(CommitRow.collection_id == name)
    with scene.catalog.read() as session:
        return {row.version: row.mz_timestamp for row in session.execute(query)}


def added_up(feed: Counter[tuple[object, ...]], times: Mapping[int, int]) -> Changes:
    found: Changes = {}
    for (version, kind, *row), count in feed.items():
        at = found.setdefault(times[version], Counter())
        at[repr(tuple(row))] += SIGNS[kind] * count
    return {at: rows for at, some in found.items() if (rows := Counter({row: n for row, n in some.items() if n}))}


@pytest.mark.parametrize("vectors", [True, False])
def test_the_feeds_of_spark_and_delta_rs_add_up_to_our_stream(
    spark: SparkSession, scene: KeyedScene, vectors: bool
) -> None:
    table_id = scene.add_table("t", PLAIN.spec.model_copy(update={"deletion_vectors": vectors}))
    for number, tick in enumerate(scene.case.ticks, start=1):
        scene.run([tick])
        if number in COMPACTED_AFTER:
            compacted(scene, scene.point(table_id).data)
    name = scene.point(table_id).data
    times, path = times_of(scene, name), Path(scene.root, name)
    first, last = sorted(times)[1], max(times)
    assert last - first > len(TICKS) - 2, "there were compactions"
    ours = changes_of(scene.catalog, scene.root, "t", Asked(times[first], snapshot=False, columns=ROW))
    spark.conf.set(SPARKS_LIMIT, "false")
    try:
        for reader, feed in feeds(path, ROW, spark).items():
            assert added_up(feed(first, last), times) == ours, reader
    finally:
        spark.conf.unset(SPARKS_LIMIT)
    # What was written anew as it was is no change, and neither is what came and went at once.
    assert [sum(map(abs, rows.values())) for rows in ours.values()] == [4, 2, 3, 2, 1, 3]
