"""Tables whose rows change, on a real topic: equal to the oracle at every tick, live, late, and after kills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.storage.crashpoints import (
    COMPACTION_LABELS,
    KEYED_LABELS,
    LABELS,
    VARIABLE,
    VECTOR_LABELS,
)
from tests.support.kafka import Record, create_topic, produce
from tests.support.keyed_cases import SHAPES, drawn
from tests.support.keyed_oracle import adding
from tests.support.keyed_stack import KeyedTable, check_keyed, keyed_tables, sent
from tests.support.plugins import ENVELOPE, installed, python_with
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

LONG = pytest.mark.timeout(1200)
PATIENCE = 480
"""Seconds for what a backfill does: it has the lowest priority, and so the least of a busy machine."""
PLAIN = Table("plain", (("name", "text"),))


def test_keyed_tables_of_every_shape_equal_the_oracle_at_every_tick(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 3)
    produce(kafka, topic, sent(drawn(1, ticks=4)))
    keyed = keyed_tables(SHAPES)
    source = stack.create("events", topic, [PLAIN, *keyed])
    names = [table.name for table in (PLAIN, *keyed)]
    with stack.running(source):
        for seed, shape in enumerate(SHAPES.values()):
            produce(kafka, topic, sent(drawn(seed, shape, ticks=3)))
            stack.wait_caught_up(source, names)
    for table in keyed:
        check_keyed(stack, source, cast(KeyedTable, table))
    stack.check(topic, [PLAIN])


def test_a_keyed_table_that_comes_late_is_backfilled_and_cut_over(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 3)
    source = stack.create("events", topic, [PLAIN])
    late = [
        KeyedTable(f"late{vectors}", shape=SHAPES["composite inline"], vectors=vectors) for vectors in (True, False)
    ]
    names = [table.name for table in late]
    with stack.running(source):
        for seed in range(6):
            produce(kafka, topic, sent(drawn(seed, late[0].shape, ticks=3)))
            stack.wait_caught_up(source, ["plain"])
        stack.add(source, late)
        backfill = stack.start_backfill(names[0])
        produce(kafka, topic, sent(drawn(7, late[0].shape, ticks=3)))
        stack.wait_cut_over(names)
        assert backfill.join().state == "finished"
        produce(kafka, topic, sent(drawn(8, late[0].shape, ticks=3)))
        stack.wait_caught_up(source, ["plain", *names])
    for table in late:
        check_keyed(stack, source, table)
    stack.check(topic, [PLAIN])


@pytest.fixture
def adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedTable]:
    """Of an envelope of another package, which this process and the apps have."""
    shape = replace(SHAPES["composite inline"], envelope="adding")
    monkeypatch.setattr("sys.executable", str(python_with(ENVELOPE, tmp_path / "python")))
    with installed(ENVELOPE, ENVELOPES):
        yield KeyedTable("keyed", shape=shape, apply=adding(shape))


ALL = (pytest.mark.full(seconds=120), LONG)
MERGED_LABELS = tuple(label for label in KEYED_LABELS if label not in VECTOR_LABELS)


@pytest.mark.parametrize(
    ("labels", "vectors"),
    [
        (("entry_put",), True),
        (("keyed_put",), False),
        pytest.param((*LABELS, *KEYED_LABELS), True, marks=ALL),
        pytest.param((*LABELS, *MERGED_LABELS), False, marks=ALL),
    ],
    ids=["one", "one, merged", "all", "all, merged"],
)
def test_killed_in_the_middle_of_a_commit_to_a_keyed_table(
    labels: tuple[str, ...],
    vectors: bool,
    kafka: EmbeddedKafka,
    adds: KeyedTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tick that is applied twice changes what an envelope that adds has counted, as it would not change an upsert."""
    adds = replace(adds, vectors=vectors)
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    topic = create_topic(kafka, 3)
    source = stack.create("events", topic, [PLAIN, adds])
    started: list[Handle] = []
    pending, before = False, ""
    try:
        for seed, label in enumerate(labels):
            produce(kafka, topic, sent(drawn(seed, adds.shape)))
            # Where the app before left a tick, this one passes its labels once to finish it: it dies in the tick after.
            # A commit that is there already is not made again.
            per_tick, nth = (4, 2) if label == "between_commits" else (1, 1)
            again = pending and not (label in KEYED_LABELS and before == "entry_put")
            monkeypatch.setenv(VARIABLE, f"{label}@{nth + again * per_tick}")
            started.append(stack.launch(source))
            wait_until(lambda: stack.launcher.status(started[-1]) == "gone", 120, f"death at {label}")
            pending, before = bool(stack.store(source).load().pending), label
        monkeypatch.delenv(VARIABLE)
        produce(kafka, topic, sent(drawn(99, adds.shape)))
        started.append(stack.launch(source))
        stack.wait_caught_up(source, ["plain", "keyed"], timeout=120)
    finally:
        for handle in started:
            stack.launcher.kill(handle)
    check_keyed(stack, source, adds)
    stack.check(topic, [PLAIN])
    stack.catalog.close()


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merged"])
@pytest.mark.full(seconds=120)
@pytest.mark.timeout(3_000)
def test_a_backfill_killed_in_the_middle_of_a_commit_to_a_keyed_table(
    vectors: bool, kafka: EmbeddedKafka, adds: KeyedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of ticks: the history at first, then what has come since the death before."""
    late = replace(adds, vectors=vectors)
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    topic = create_topic(kafka, 3)
    source = stack.create("events", topic, [PLAIN])
    started = [stack.launch(source)]
    try:
        for seed in range(3):
            produce(kafka, topic, sent(drawn(seed, late.shape)))
            stack.wait_caught_up(source, ["plain"], timeout=120)
        stack.add(source, [late])
        for seed, label in enumerate(KEYED_LABELS if vectors else MERGED_LABELS, start=3):
            produce(kafka, topic, sent(drawn(seed, late.shape)))
            stack.wait_caught_up(source, ["plain"], timeout=120)
            monkeypatch.setenv(VARIABLE, label)
            started.append(stack.launch_backfill(late.name))
            monkeypatch.delenv(VARIABLE)
            wait_until(lambda: stack.launcher.status(started[-1]) == "gone", PATIENCE, f"death at {label}")
        started.append(stack.launch_backfill(late.name))
        produce(kafka, topic, sent(drawn(98, late.shape)))
        stack.wait_cut_over([late.name], timeout=PATIENCE)
        produce(kafka, topic, sent(drawn(99, late.shape)))
        stack.wait_caught_up(source, ["plain", late.name], timeout=120)
    finally:
        for handle in started:
            stack.launcher.kill(handle)
    check_keyed(stack, source, late)
    stack.check(topic, [PLAIN])
    stack.catalog.close()


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merged"])
@pytest.mark.full(seconds=90)
def test_killed_in_the_middle_of_a_compaction_of_a_keyed_table(
    vectors: bool, kafka: EmbeddedKafka, adds: KeyedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that take the place of others are there or not: rows are the same, and later ticks find them."""
    adds = replace(adds, vectors=vectors)
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    topic = create_topic(kafka, 3)
    source = stack.create("events", topic, [adds])
    started: list[Handle] = []
    seeds = iter(range(1_000))
    try:
        for label in COMPACTION_LABELS:
            monkeypatch.setenv(VARIABLE, label)
            started.append(stack.launch(source))
            produce(kafka, topic, sent(drawn(next(seeds), adds.shape)))
            for _ in range(3):
                # Files of new keys alone are not written anew by a merge.
                keys = [f'{{"b": "{next(seeds)} {n}", "flag": true}}'.encode() for n in range(5)]
                produce(kafka, topic, [Record(b'{"n": 1, "name": "new"}', key) for key in keys])
                stack.wait_caught_up(source, ["keyed"], timeout=120)
            maintain(stack.catalog, str(stack.warehouse))
            wait_until(lambda: stack.launcher.status(started[-1]) == "gone", 120, f"death at {label}")
        monkeypatch.delenv(VARIABLE)
        produce(kafka, topic, sent(drawn(next(seeds), adds.shape)))
        started.append(stack.launch(source))
        stack.wait_caught_up(source, ["keyed"], timeout=120)
    finally:
        for handle in started:
            stack.launcher.kill(handle)
    check_keyed(stack, source, adds)
    stack.catalog.close()
