"""A warehouse without room, or that cannot be written, is nobody's failure: everybody waits, and goes on."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.apps import backfill_groups, base
from airflow_provider_mzshare.storage.collections.audit import unnamed_files
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from tests.support.kafka import Record, create_topic, produce
from tests.support.keyed_oracle import Shape
from tests.support.keyed_stack import KeyedTable, check_keyed
from tests.support.small_disk import fill, remount, small_disk
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

NUMBERS = Table("numbers", (("n", "bigint"), ("noise", "text")))
WORDS = Table("words", (("w", "text"), ("noise", "text")))
RAW = Table("raw", format="bytes")
TABLES = [NUMBERS, WORDS, RAW]
NAMES = [t.name for t in TABLES]
SIZE = 48 << 20


def record(n: int) -> Record:
    """Every fifth is an error of two tables. Noise does not get smaller when it is compressed."""
    wrong = n % 5 == 0
    value = {"n": "no number" if wrong else n, "w": n if wrong else f"w{n}", "noise": os.urandom(500).hex()}
    return Record(json.dumps(value).encode(), partition=n % 2)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "RETRY_SECONDS", (0.1,))
    monkeypatch.setattr(backfill_groups, "PATIENCE", 3)


class Told:
    """What an app says that holds it up, and how often it has tried again."""

    def __init__(self, logged: pytest.LogCaptureFixture) -> None:
        logged.set_level(logging.INFO, logger="airflow_provider_mzshare")
        self._logged, self.all = logged, list[str | None]()

    def __call__(self, trouble: str | None) -> None:
        self.all.append(trouble)

    def wait_for(self, text: str, *, times: int) -> None:
        wait_until(lambda: any(text in (one or "") for one in self.all), 60, f"the app to say {text!r}")
        wait_until(lambda: self._tries(text) >= times, 90, f"{times} tries against {text!r}")

    def _tries(self, text: str) -> int:
        lines = [record.getMessage() for record in self._logged.records]
        return sum("will try again" in line and text in line for line in lines)

    def wait_over(self) -> None:
        wait_until(lambda: self.all[-1] is None, 30, "the app to say that it goes on")


def check_nobody_is_blamed(stack: Stack, source: ItemId, statuses: dict[str, str]) -> None:
    assert {name: stack.table(name).status for name in statuses} == statuses
    assert not [name for name in statuses if stack.table(name).reason]
    assert all(tick.attempts <= 2 for tick in stack.store(source).load().pending), "no attempt is counted"


def leftovers(stack: Stack) -> dict[str, frozenset[str]]:
    """Data files that no version names, per collection."""
    found: dict[str, frozenset[str]] = {}
    with stack.catalog.read() as session:
        paths = [path for name in NAMES for path in stack.collections(session, name).values()]
    for path in paths:
        if files := unnamed_files(Collection.open(str(stack.warehouse), CollectionId(path))):
            found[path] = files
    return found


@pytest.mark.mounts
def test_a_disk_that_fills_up_stalls_nobody_and_all_go_on_by_themselves(
    stack: Stack, kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(stack.warehouse, SIZE) as disk:
        topic = create_topic(kafka, 2)
        produce(kafka, topic, [record(n) for n in range(20)])
        source, told = stack.create("events", topic, TABLES), Told(caplog)
        with stack.running(source, on_trouble=told) as app:
            stack.wait_caught_up(source, NAMES)
            # A probe fits and so do the files of some members, but not those of all.
            filler = fill(disk, leave=3 << 20)
            produce(kafka, topic, [record(n) for n in range(20, 4_000)])
            told.wait_for("has no free space", times=5)
            check_nobody_is_blamed(stack, source, dict.fromkeys(NAMES, "live"))
            filler.unlink()
            stack.wait_caught_up(source, NAMES)
            told.wait_over()
            remount(disk, "ro")
            produce(kafka, topic, [record(n) for n in range(4_000, 4_020)])
            told.wait_for("is read-only", times=2)
            remount(disk, "rw")
            stack.wait_caught_up(source, NAMES)
            assert app.end is None
        check_nobody_is_blamed(stack, source, dict.fromkeys(NAMES, "live"))
        stack.check(topic, TABLES)
        assert not leftovers(stack), "what failed attempts had written is gone"


@pytest.mark.mounts
@pytest.mark.parametrize("vectors", [True, pytest.param(False, marks=pytest.mark.full)], ids=["vectors", "merged"])
def test_a_keyed_table_waits_for_room_and_holds_the_last_of_every_key_afterwards(
    vectors: bool, stack: Stack, kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """Its commits write files of their own, which nothing removes at once: there must be room after some tries, too."""
    keyed = KeyedTable("keyed", shape=Shape(columns=(("n", "bigint"), ("noise", "text"))), vectors=vectors)
    with small_disk(stack.warehouse, SIZE) as disk:
        topic = create_topic(kafka, 2)
        produce(kafka, topic, [record(n)._replace(key=f"k{n % 2_000}".encode()) for n in range(20)])
        source, told = stack.create("events", topic, [RAW, keyed]), Told(caplog)
        with stack.running(source, on_trouble=told) as app:
            stack.wait_caught_up(source, ["raw", "keyed"])
            filler = fill(disk, leave=5 << 20)
            produce(kafka, topic, [record(n)._replace(key=f"k{n % 2_000}".encode()) for n in range(20, 4_000)])
            told.wait_for("has no free space", times=5)
            check_nobody_is_blamed(stack, source, {"raw": "live", "keyed": "live"})
            filler.unlink()
            stack.wait_caught_up(source, ["raw", "keyed"])
            told.wait_over()
            assert app.end is None
        check_nobody_is_blamed(stack, source, {"raw": "live", "keyed": "live"})
        check_keyed(stack, source, keyed)
        stack.check(topic, [RAW])


@pytest.mark.mounts
def test_a_backfill_waits_for_room_too_also_to_create_its_tables(
    stack: Stack, kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(stack.warehouse, SIZE) as disk:
        topic = create_topic(kafka, 2)
        produce(kafka, topic, [record(n) for n in range(4_000)])
        source = stack.create("events", topic, [RAW])
        with stack.running(source):
            stack.wait_caught_up(source, ["raw"])
            stack.add(source, [NUMBERS, WORDS])
            arriving = {"numbers": "backfilling", "words": "backfilling"}
            filler, told = fill(disk), Told(caplog)
            backfill = stack.start_backfill("numbers", on_trouble=told)
            told.wait_for("has no free space", times=4)
            check_nobody_is_blamed(stack, source, arriving)
            filler.unlink()
            filler = fill(disk, leave=3 << 20)
            told.wait_for("has no free space", times=8)
            check_nobody_is_blamed(stack, source, arriving)
            filler.unlink()
            stack.wait_cut_over(["numbers", "words"])
            assert backfill.join().state == "finished"
        stack.check(topic, TABLES)
        assert not leftovers(stack)


@pytest.mark.mounts
def test_what_spark_says_of_a_full_disk_is_understood(stack: Stack, tmp_path: Path) -> None:
    """Its own scratch is written by Java, which tells no number."""
    assert stack.spark is not None
    with small_disk(tmp_path / "full", SIZE) as disk:
        fill(disk)
        with pytest.raises(Exception, match="No space left") as raised:
            stack.spark.range(100_000).selectExpr("uuid()").write.parquet(f"file://{disk}/scratch")
        assert fault_of(raised.value) == "full"
    with small_disk(tmp_path / "fixed", SIZE) as disk:
        remount(disk, "ro")
        with pytest.raises(Exception, match="Read-only") as raised:
            stack.spark.sparkContext._jvm.java.io.FileOutputStream(f"{disk}/new")  # type: ignore[union-attr]
        assert fault_of(raised.value) == "read_only"
