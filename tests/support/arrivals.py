"""Records and tables of the scenarios in which tables come later."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.storage.collections import audit, log
from airflow_provider_mzshare.storage.collections.collection import Collection
from tests.support.kafka import Record, produce
from tests.support.stack import Stack, Table

NUMBERS = Table("numbers", (("n", "bigint"),))
LATE = Table("late", (("w", "text"), ("n", "bigint")), include=("offset",))
SIBLING = Table("sibling", (("w", "text"), ("n", "bigint")), include=("offset",))
"""Live from the start, of the same columns as the one that comes later."""


def record(n: int, partition: int | None = None) -> Record:
    """One in ten cannot be decoded."""
    value = {"n": n if n % 10 else str(n), "w": f"w{n}"}
    return Record(json.dumps(value).encode(), partition=n % 2 if partition is None else partition)


def records(first: int, count: int) -> list[Record]:
    return [record(n) for n in range(first, first + count)]


def in_ticks(stack: Stack, source: ItemId, names: Sequence[str], *, count: int, first: int = 0) -> None:
    """A history of so many ticks with 100 records each, by an ingestion app that runs."""
    for n in range(first, first + 100 * count, 100):
        produce(stack.kafka, stack.topic(source), records(n, 100))
        stack.wait_caught_up(source, names)


def mint(stack: Stack, source: ItemId) -> None:
    """A tick up to where the topic is now, as by an ingestion app that dies right after."""
    store = stack.store(source)
    holder = store.claim(JobId("died-early"))
    with stack.upstream(stack.topic(source)) as upstream:
        end, incarnation = upstream.end_offsets(), upstream.describe().incarnation
    store.mint(holder, lower=store.load().upper, upper=end, incarnation=incarnation)
    store.release(holder)


def check_same_as_sibling(stack: Stack, source: ItemId) -> None:
    """Row for row as the model says, and to the tick as a table that was live all the time."""
    stack.check(stack.topic(source), [LATE])
    assert stack.rows("late") == stack.rows("sibling")
    assert stack.tick_of_each("late") == stack.tick_of_each("sibling")
    late, sibling = stack.table("late"), stack.table("sibling")
    assert (late.rows, late.errors) == (sibling.rows, sibling.errors)
    check_logs(stack, source, ["late", "sibling"])


def check_logs(stack: Stack, source: ItemId, names: Sequence[str]) -> None:
    """No tick twice in any collection, every commit's tick is one of the log, and no file came in otherwise."""
    store = stack.store(source)
    with stack.catalog.read() as session:
        paths = [path for name in names for path in stack.collections(session, name).values()]
    for path in paths:
        collection = Collection.open(str(stack.warehouse), CollectionId(path))
        times = [commit.mz_timestamp for commit in audit.transactions(collection)]
        assert times == sorted(set(times)), f"{path}: a tick twice, or out of order"
        assert all(store.knows(time) for time in times)
        brought = set()
        for version in range(collection.delta_version + 1):
            entry = log.read_entry(collection.filesystem, version)
            assert entry is not None
            if entry.tick(collection.collection_id):
                brought |= set(entry.added())
        assert set(audit.active_files(collection, collection.delta_version)) == brought
        assert brought <= {info.path for info in audit.data_files(collection)}


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Root may write anywhere but into an immutable folder."""
    subprocess.run(["chattr", "+i", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)
