"""A keyed table of a running app, as every reader reads it again and again: each answer is one tick's, whole."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from deltalake import DeltaTable

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.rows import SPARKS_LIMIT
from tests.support.kafka import create_topic, produce
from tests.support.keyed_cases import drawn
from tests.support.keyed_oracle import SYSTEM
from tests.support.keyed_readers import Rows, held, readers
from tests.support.keyed_stack import KeyedTable, check_keyed, sent, states_of
from tests.support.stack import Stack
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYED = KeyedTable("keyed")
COLUMNS = tuple(name for name, _ in (*KEYED.shape.visible, *SYSTEM))
COMPACTED_AFTER = 20
"""So many commits to a table with vectors."""


class Answer(NamedTuple):
    """:param first: the newest version when the read began, or the one that was asked for.
    :param last: the newest when it ended, or the one that was asked for.
    """

    reader: str
    first: int
    last: int
    rows: Rows


def newest(path: Path) -> int:
    return int(DeltaTable(str(path)).version())


@contextmanager
def fed(stack: Stack, source: ItemId) -> Iterator[None]:
    """Records come as fast as the app takes them."""
    enough = threading.Event()
    topic = stack.topic(source)

    def feed() -> None:
        seed = 1
        while not enough.is_set():
            produce(stack.kafka, topic, sent(drawn(seed)))
            stack.wait_caught_up(source, [KEYED.name], timeout=240)
            seed += 1

    with ThreadPoolExecutor(1) as thread:
        feeding = thread.submit(feed)
        try:
            yield
        finally:
            enough.set()
        feeding.result()


def read_again_and_again(path: Path, spark: SparkSession, *, rounds: int, commits: int) -> Iterator[Answer]:
    """Now, and as of the tick that is the newest when this begins; until the table has had so many commits more."""
    old = newest(path)
    looks = held(path, COLUMNS, old, spark)
    done = 0
    while done < rounds or newest(path) < old + commits:
        begun, done = newest(path), done + 1
        for name, read in readers(path, COLUMNS, spark).items():
            first = newest(path)
            rows = read(None)
            yield Answer(name, first, newest(path), rows)
            yield Answer(name, old, old, read(old))
        for name, look in looks.items():
            yield Answer(f"{name}, held", old, old, look())
        wait_until(lambda: newest(path) > begun, 120, "the next commit")  # noqa: B023  asked at once


@pytest.mark.parametrize(
    ("rounds", "commits"),
    [(1, 3), pytest.param(10, COMPACTED_AFTER + 10, marks=pytest.mark.full(seconds=240))],
    ids=["few", "many"],
)
@pytest.mark.timeout(1200)
def test_all_read_whole_ticks_beside_a_running_app(
    stack: Stack, kafka: EmbeddedKafka, spark: SparkSession, rounds: int, commits: int
) -> None:
    topic = create_topic(kafka, 3)
    produce(kafka, topic, sent(drawn(0, ticks=4)))
    source = stack.create("events", topic, [KEYED])
    app = stack.launch(source)
    spark.conf.set(SPARKS_LIMIT, "false")
    try:
        stack.wait_caught_up(source, [KEYED.name], timeout=240)
        with stack.catalog.read() as session:
            path = stack.warehouse / stack.collections(session, KEYED.name)["data"]
        with fed(stack, source):
            answers = list(read_again_and_again(path, spark, rounds=rounds, commits=commits))
    finally:
        spark.conf.unset(SPARKS_LIMIT)
        stack.launcher.kill(app)
    check_answers(stack, source, path, answers)
    check_keyed(stack, source, KEYED)
    if commits > COMPACTED_AFTER:
        assert any(is_compaction(path, version) for version in range(newest(path)))


def check_answers(stack: Stack, source: ItemId, path: Path, answers: Sequence[Answer]) -> None:
    at = rows_at(stack, source, path)
    for reader, first, last, rows in answers:
        assert any(rows == at[version] for version in range(first, last + 1)), (reader, first, last, rows)
    assert at[min(first for _, first, _, _ in answers)] != at[max(last for _, _, last, _ in answers)], (
        "the table has changed in between"
    )


def rows_at(stack: Stack, source: ItemId, path: Path) -> list[Rows]:
    """What each version of the collection must hold: the tick that was committed last."""
    states = states_of(stack, source, KEYED)
    files = deltalog.open_filesystem(str(path))
    found: list[Rows] = []
    for version in range(newest(path) + 1):
        entry = deltalog.read_entry(files, version)
        tick = entry.tick(CollectionId(path.name)) if entry else None
        if tick:
            state = states[int(tick.metadata["mz_tick"])]
            found.append(Counter(row.all for row in state.rows.values()))
        else:
            found.append(found[-1] if found else Counter())
    return found


def is_compaction(path: Path, version: int) -> bool:
    entry = deltalog.read_entry(deltalog.open_filesystem(str(path)), version)
    infos = [action["commitInfo"] for action in entry.actions if "commitInfo" in action] if entry else []
    return any(info.get("mz_compaction") for info in infos)
