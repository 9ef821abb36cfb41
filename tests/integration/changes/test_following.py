"""A change stream that goes on: with ticks, swaps and stalls that come while it is read."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare import MzShare
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table, resume_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.standings import Standing
from airflow_provider_mzshare.control.lifecycle.change_following import follow_changes
from airflow_provider_mzshare.control.lifecycle.change_stream import Asked, open_changes
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import ColumnSpec
from airflow_provider_mzshare.errors import NotReadable
from tests.integration.cli.conftest import Cli
from tests.support.change_streams import Streams
from tests.support.filled import Filled
from tests.support.keyed_cases import PLAIN, Step, assemble
from tests.support.keyed_scene import KeyedScene
from tests.support.waiting import wait_until

LOOK = 0.05


@pytest.fixture
def filled(filled: Filled) -> Filled:
    """``orders`` has two ticks of a row each."""
    filled.table(filled.source(), "orders", "id bigint")
    for number in range(2):
        filled.feed(SOURCE, [{"id": number}])
    return filled


SOURCE = ItemId("u1")


@contextmanager
def meanwhile(do: Callable[[], object]) -> Iterator[None]:
    """In a thread of its own; what it raises fails the test."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            do()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not raised, raised


def ids_until(mz: MzShare, last: int, **asked: Any) -> list[tuple[int, int]]:
    """Times and ids, up to the one that ends the test."""
    found: list[tuple[int, int]] = []
    with mz.follow("orders", poll_seconds=LOOK, timeout=60, **asked) as batches:
        for batch in batches:
            found += zip(batch.column("mz_timestamp").to_pylist(), batch.column("id").to_pylist(), strict=True)
            if last in batch.column("id").to_pylist():
                break
    return found


def test_what_comes_follows_what_is_there(mz: MzShare, filled: Filled) -> None:
    times: list[int] = []

    def feed() -> None:
        for number in range(2, 6):
            times.append(filled.feed(SOURCE, [{"id": number}]).mz_timestamp)

    with meanwhile(feed):
        found = ids_until(mz, 5)
    assert sorted(number for _, number in found) == list(range(6))
    stamped = {number: at for at, number in found if number > 1}
    assert list(stamped) == sorted(stamped)
    assert all(stamped[number] in (at, found[0][0]) for number, at in zip(range(2, 6), times, strict=True))
    assert len(ids_until(mz, 5, snapshot=False)) == 5, "with the changes after the first tick"


def test_it_ends_where_it_is_told_to_and_when_the_time_is_up(mz: MzShare, filled: Filled) -> None:
    third = filled.feed(SOURCE, [{"id": 2}]).mz_timestamp
    with mz.follow("orders", as_of=third - 1, up_to=third + 1, poll_seconds=LOOK) as batches:
        assert batches.read_all().num_rows == 3
    soon = third + 100_000
    with mz.follow("orders", as_of=soon, poll_seconds=LOOK, timeout=0.2) as batches:
        found = batches.read_all()
    assert (found.num_rows, found.schema.names) == (0, ["mz_timestamp", "mz_diff", "id"])
    began = time.monotonic()
    with mz.follow("orders", progress=True, poll_seconds=60, timeout=0.5) as batches:
        marks = [row["mz_timestamp"] for row in batches.read_all().to_pylist() if row["mz_progressed"]]
    assert marks == [third + 1]
    assert time.monotonic() - began < 30


def test_progress_goes_on_without_rows(mz: MzShare, filled: Filled) -> None:
    with mz.follow("orders", progress=True, columns=["id"], poll_seconds=LOOK, timeout=60) as batches:
        rows = (row for batch in batches for row in batch.to_pylist())
        assert [next(rows)["mz_progressed"] for _ in range(3)] == [False, False, True]
        tick = filled.feed(SOURCE, [])
        assert next(rows) == {"mz_timestamp": tick.mz_timestamp + 1, "mz_progressed": True, "mz_diff": None, "id": None}


def test_a_table_without_a_tick_is_waited_for(mz: MzShare, filled: Filled) -> None:
    other = filled.source("other")
    filled.table(other, "new", "id bigint")
    with meanwhile(lambda: filled.feed(other, [{"id": 9}])), mz.follow("new", poll_seconds=LOOK, timeout=60) as batches:
        assert batches.read_next_batch().column("id").to_pylist() == [9]


def test_a_table_that_stalls_meanwhile_is_told_of_once(mz: MzShare, filled: Filled) -> None:
    told: list[str] = []

    def tell(tables: Sequence[Standing]) -> None:
        told.extend(table.far for table in tables)

    asked, look = Asked(None, None, True), {"poll_seconds": LOOK, "timeout": 60, "not_live": tell}
    with follow_changes(filled.catalog, filled.root, "orders", asked, **look) as batches:  # type: ignore[arg-type]
        assert batches.read_next_batch().num_rows == 2
        filled.feed(SOURCE, [{"id": 2}])
        assert (batches.read_next_batch().num_rows, told) == (1, [])
        with filled.catalog.read() as session:
            table_id = items.find_table(session, ("public", "orders")).id
        filled.feed(SOURCE, [{"id": 3}], stall=[table_id])

        def drop() -> None:
            wait_until(lambda: bool(told), 30, "a look")
            mz.sql("DROP TABLE orders")

        with meanwhile(drop), pytest.raises(NotReadable, match="was dropped"):
            batches.read_next_batch()
    assert told == ["stalled (full), 1 tick (1 offset) behind, 3 of 4 offsets"]


def test_it_stays_with_its_table_whatever_it_is_called_and_ends_with_it(mz: MzShare, filled: Filled) -> None:
    with mz.follow("orders", poll_seconds=LOOK, timeout=60) as batches:
        assert batches.read_next_batch().num_rows == 2
        mz.sql("ALTER TABLE orders RENAME TO sold")
        filled.feed(SOURCE, [{"id": 2}])
        assert batches.read_next_batch().column("id").to_pylist() == [2]
        mz.sql("DROP TABLE sold")
        with pytest.raises(NotReadable, match="was dropped"):
            batches.read_next_batch()


# ── healed, and filled anew ───────────────────────────────────────────────────────────────────────────────────────────

ONE, TWO, BAD = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}', b"{"
TICKS = [
    [Step(0, b"a", ONE), Step(0, b"b", ONE)],
    [Step(0, b"x", BAD), Step(0, b"a", TWO)],
    [Step(0, b"b", None)],
    [Step(0, b"c", TWO)],
    [Step(0, b"a", None)],
]


@pytest.mark.parametrize("again", [resume_table, resnapshot_table])
def test_a_table_that_is_healed_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: Callable[..., object]
) -> None:
    """A group is one step; a new generation is the difference. Nothing is seen before the table is live again."""
    case = assemble(PLAIN, TICKS)
    scene = KeyedScene(tmp_path, case, monkeypatch.setattr)
    table = scene.add_table("t", case.shape.spec.model_copy(update={"on_decode_error": "stop"}))
    scene.add_table("other")
    scene.run(case.ticks[:1])
    with follow_changes(scene.catalog, scene.root, "t", Asked(progress=True), poll_seconds=LOOK, timeout=60) as batches:
        lines = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
        assert sorted(next(lines)[2:] for _ in range(2)) == [(1, 1, "one", "a"), (1, 1, "one", "b")]
        assert next(lines)[1] is True
        scene.run(case.ticks[1:4])
        assert scene.table(table).status == "stalled"
        with scene.catalog.write() as session:
            items.set_table_spec(session, table, case.shape.spec)
            again(session, table)
        scene.backfill(table)
        scene.run(case.ticks[4:])
        end = (scene.table(table).upper, True, None, None, None, None)
        found = sorted(row[:1] + row[2:] for row in takewhile(lambda row: row != end, lines) if not row[1])
    *_, fourth, fifth = scene.times()
    old, new = (-1, 1, "one", "a"), (1, 2, "two", "c")
    if again is resnapshot_table:
        assert found == [(fifth, *old), (fifth, -1, 1, "one", "b"), (fifth, *new)]
    else:
        both = [old, (-1, 1, "one", "b"), (1, 2, "two", "a"), new]
        assert found == [*((fourth, *row) for row in both), (fifth, -1, 2, "two", "a")]
    streams = Streams(scene.catalog, scene.root, "t")
    assert len(streams.states) < len(streams.times) - 2, "there are times without a state"
    assert streams.check()
    scene.close()


def test_other_columns_end_it_unless_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = assemble(PLAIN, [[Step(0, b"a", ONE)], [Step(0, b"b", b'{"n": 2, "more": "new"}')]])
    scene = KeyedScene(tmp_path, case, monkeypatch.setattr)
    table = scene.add_table()
    scene.run(case.ticks[:1])

    def following(columns: list[str] | None) -> Any:
        asked = Asked(columns=columns)
        return follow_changes(scene.catalog, scene.root, "t", asked, poll_seconds=LOOK, timeout=60)

    with following(None) as everything, following(["n", "key"]) as named:
        for batches in (everything, named):
            assert batches.read_next_batch().num_rows == 1
        with scene.catalog.write() as session:
            spec = scene.table(table).spec
            columns = (*spec.columns, ColumnSpec(name="more", type="text"))
            items.set_table_spec(session, table, spec.model_copy(update={"columns": columns}))
        scene.run(case.ticks[1:])
        (first, second) = scene.times()
        assert named.read_next_batch().to_pylist() == [{"mz_timestamp": second, "mz_diff": 1, "n": 2, "key": "b"}]
        with pytest.raises(NotReadable, match="t has got other columns"):
            everything.read_next_batch()
    with open_changes(scene.catalog, scene.root, "t", Asked(as_of=first)) as anew:
        assert [row["more"] for row in anew.read_all().to_pylist()] == [None, "new"]
    assert Streams(scene.catalog, scene.root, "t").check()
    scene.close()


def test_on_the_command_line_until_it_is_interrupted(cli: Cli, filled: Filled) -> None:
    def outputs(*options: str) -> list[str]:
        return cli.ok("changes", "orders", "-f", "--timeout", "0", *options).out.splitlines()

    assert outputs()[0].split() == ["mz_timestamp", "mz_diff", "id"]
    assert len(outputs("--no-snapshot", "-o", "json")) == 1
    assert outputs("--limit", "1", "-o", "csv")[0] == "mz_timestamp,mz_diff,id"
    assert len(outputs("--limit", "1", "-o", "csv")) == 2
    assert "--timeout goes with -f" in cli("changes", "orders", "--timeout", "1").err

    with subprocess.Popen(
        cli.command("changes", "orders", "-f", "-o", "json"), env=cli.environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert [running.stdout.readline().count('"id"') for _ in range(2)] == [1, 1]
        filled.feed(SOURCE, [{"id": 7}])
        assert '"id": 7' in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        wait_until(lambda: running.poll() is not None, 30, "the end")
    assert running.returncode == 130
