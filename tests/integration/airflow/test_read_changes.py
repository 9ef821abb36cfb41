"""Slices of change streams, as tasks read them: disjoint, whole, the same again; and what is refused or waited for."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from airflow.sdk import Context
from airflow.sdk import timezone as timezones
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.holds import HoldStore
from airflow_provider_mzshare.control.catalog.objects.hold_rows import list_holds
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import StalePlan, WaitTimeout
from airflow_provider_mzshare.hooks.changes import Slice, milliseconds, told
from airflow_provider_mzshare.operators.changes import ReadChangesOperator
from airflow_provider_mzshare.triggers.offsets import OffsetsConvergedTrigger
from tests.support.change_streams import Rows, rows_of
from tests.support.filled import Filled
from tests.support.keyed_cases import drawn
from tests.support.keyed_scene import KeyedScene

NOTHING = Context()


def operator(**arguments: Any) -> ReadChangesOperator:
    return ReadChangesOperator(
        **{"task_id": f"t{uuid4().hex}", "table": "orders", "mzshare_conn_id": "mz", "deferrable": False} | arguments
    )


def connect(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MZ", json.dumps({"conn_type": "mzshare", "extra": {"home": str(home)}}))
    monkeypatch.setenv("AIRFLOW__MZSHARE__POLL_INTERVAL", "0.1")


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filled]:
    """``orders`` has a row for each tick."""
    connect(tmp_path, monkeypatch)
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        made = Filled(catalog, tmp_path)
        made.table(made.source(), "orders", "id bigint, note text")
        yield made


def feed(filled: Filled, *numbers: int) -> int:
    """:returns: the tick's time."""
    return filled.feed(ItemId("u1"), [{"id": number, "note": f"n{number}"} for number in numbers]).mz_timestamp


def read(**arguments: Any) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """What the task returns, and the rows that it was given."""
    rows: list[tuple[Any, ...]] = []

    def process(part: Slice, context: Context) -> str:
        with part.open() as batches:
            rows.extend(tuple(row.values()) for batch in batches for row in batch.to_pylist())
        return "done"

    answer = operator(process=process, **arguments).execute(NOTHING)
    return json.loads(json.dumps(answer)), rows


def test_a_slice_is_what_happened_in_the_interval_and_the_same_whenever_it_is_read(filled: Filled) -> None:
    first, second, third = feed(filled, 0), feed(filled, 1, 2), feed(filled, 3)
    answer, rows = read(start=first + 1, end=third)
    assert sorted(rows) == [(second, 1, 1, "n1"), (second, 1, 2, "n2")]
    assert answer == {
        "table": "orders", "table_id": "u2", "start": first + 1, "end": third, "snapshot": False,
        "changes": 2, "inserts": 2, "deletes": 0, "result": "done",
    }  # fmt: skip
    feed(filled, 4)
    assert read(start=first + 1, end=third) == (answer, rows)
    assert read(start=third, end=third + 1, columns=["note"])[1] == [(third, 1, "n3")]
    whole, all_of_it = read(start=first + 1, end=third, snapshot=True)
    assert sorted(all_of_it) == [(third - 1, 1, n, f"n{n}") for n in range(3)]
    assert (whole["snapshot"], whole["inserts"]) == (True, 3)


def test_bounds_are_the_data_interval_or_what_is_given_as_a_template_renders_it(filled: Filled) -> None:
    first, second = feed(filled, 0), feed(filled, 1)
    moments = [datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=at) for at in (first + 1, second + 1)]
    start, end = map(timezones.coerce_datetime, moments)
    interval = Context(data_interval_start=start, data_interval_end=end)
    wanted = (first + 1, second + 1)
    for given in ({}, {"start": "None", "end": ""}, {"start": str(moments[0])}, {"end": str(second + 1)}):
        answer = operator(**given).execute(interval)
        assert (answer["start"], answer["end"]) == wanted
        assert (answer["changes"], answer["inserts"]) == (1, 1)
    assert milliseconds("t", moments[0] + timedelta(microseconds=999)) == first + 1
    assert milliseconds("t", "2026-01-01T00:00:00.5Z") == milliseconds("t", "2026-01-01 01:00:00.500+01:00")
    assert told(milliseconds("t", "2026-01-01T00:00:00Z")) == "2026-01-01T00:00:00Z"


def test_what_cannot_be_given_is_refused_once_with_the_nearest_times(filled: Filled) -> None:
    first, second = feed(filled, 0), feed(filled, 1)
    now = datetime.now(timezone.utc)
    fails: list[tuple[dict[str, Any], Context, list[str]]] = [
        ({}, NOTHING, ["no data interval", "CronDataIntervalTimetable"]),
        ({}, Context(data_interval_start=now, data_interval_end=now), ["is empty", "CronDataIntervalTimetable"]),
        ({"start": second, "end": first}, NOTHING, ["is empty"]),
        ({"start": "soon", "end": second}, NOTHING, ["start is 'soon'", "a time with a zone"]),
        ({"start": "2026-01-01 00:00", "end": second}, NOTHING, ["a time with a zone"]),
        (
            {"start": first, "end": second},
            NOTHING,
            [
                f"can be read since {first}",
                f"first time of changes without a snapshot is {first + 1}",
                told(first),
                "snapshot='first'",
            ],
        ),
        ({"start": 0, "end": first, "snapshot": True}, NOTHING, [f"the first time of a snapshot is {first}"]),
        ({"start": first + 1, "end": second, "columns": ["x"]}, NOTHING, ["no column x; there are: id, note"]),
        ({"start": 1, "end": 2, "table": "nobody"}, NOTHING, ["table 'nobody' does not exist"]),
        ({"start": 1, "end": 2, "file": "x.csv", "process": print}, NOTHING, ["not both"]),
        ({"start": first + 1, "end": second, "file": "x.doc"}, NOTHING, ["parquet, csv, json"]),
    ]
    for arguments, context, words in fails:
        with pytest.raises(AirflowFailException) as failed:
            operator(**arguments).execute(context)
        assert [word for word in words if word not in str(failed.value)] == [], str(failed.value)


def test_history_that_is_gone_is_refused_and_not_given_in_part(filled: Filled) -> None:
    first = feed(filled, 0)
    second, third = feed(filled, 1), feed(filled, 2)
    assert read(start=first + 1, end=third)[0]["changes"] == 1
    maintain(filled.catalog, filled.root, now_ms=second + 30 * 86_400_000)
    with pytest.raises(AirflowFailException, match="it can be read since"):
        read(start=first + 1, end=third)


def test_a_file_is_whole_and_the_same_after_another_try(filled: Filled, tmp_path: Path) -> None:
    first, second = feed(filled, 0), feed(filled, 1, 2)
    target = tmp_path / "out" / "slice.parquet"
    for _ in range(2):
        answer = operator(start=first + 1, end=second + 1, file=str(target)).execute(NOTHING)
        assert (answer["file"], answer["changes"]) == (str(target), 2)
        assert sorted(pq.read_table(target).column("id").to_pylist()) == [1, 2]
    assert [path.name for path in target.parent.iterdir()] == ["slice.parquet"]


def test_a_task_waits_until_the_table_has_got_to_the_end(filled: Filled) -> None:
    first = feed(filled, 0)
    end = first + 400
    timer = threading.Timer(0.5, lambda: feed(filled, 1))
    timer.start()
    answer, _ = read(start=first + 1, end=end)
    timer.join()
    assert answer["end"] == end
    with pytest.raises(WaitTimeout, match="not got all before"):
        read(start=first + 1, end=first + 10**9, wait_timeout=0.2)


def test_a_deferred_task_resumes_when_its_trigger_fires(filled: Filled) -> None:
    first = feed(filled, 0)
    task = operator(start=first + 1, end=first + 200, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(NOTHING)
    path, arguments = deferred.value.trigger.serialize()
    assert path.endswith("OffsetsConvergedTrigger")
    trigger = OffsetsConvergedTrigger(**json.loads(json.dumps(arguments)))

    async def fired() -> dict[str, Any]:
        waiting = asyncio.ensure_future(anext(trigger.run()))
        done, _ = await asyncio.wait([waiting], timeout=0.5)
        assert not done, "nothing is final yet"
        await asyncio.to_thread(feed, filled, 1)
        event = await asyncio.wait_for(waiting, 20)
        payload: dict[str, Any] = event.payload
        return payload

    event = asyncio.run(fired())
    answer = task.execute_complete(NOTHING, event)
    assert (answer["end"], answer["changes"]) == (first + 200, 0)
    assert operator(start=first + 1, end=first + 200, deferrable=True).execute(NOTHING) == answer, "no wait is needed"


def test_what_will_not_come_by_itself_ends_the_wait(filled: Filled) -> None:
    first = feed(filled, 0)
    filled.feed(ItemId("u1"), [{"id": 1}], stall=[ItemId("u2")])
    with pytest.raises(AirflowFailException, match=r"table orders is stalled: full.*RESUME"):
        read(start=first + 1, end=first + 10**9)
    trigger = OffsetsConvergedTrigger("orders", 1, "mz", 0.1, table_id="u2", upper=first + 10**9)

    async def fired() -> dict[str, Any]:
        payload: dict[str, Any] = (await anext(trigger.run())).payload
        return payload

    with pytest.raises(AirflowFailException, match="is stalled: full"):
        operator(start=first + 1, end=first + 10**9).execute_complete(NOTHING, asyncio.run(fired()))
    assert read(start=first, end=first + 1, snapshot=True)[0]["changes"] == 1, "what is final can be read"


def test_another_table_under_the_name_is_left_to_the_next_try(filled: Filled) -> None:
    first, second = feed(filled, 0), feed(filled, 1)
    filled.table(ItemId("u1"), "other", "id bigint")

    def swapped(part: Slice, context: Context) -> None:
        execute_script(filled.catalog, "ALTER TABLE orders SWAP WITH other FORCE", FixedConnections({}))
        with part.open():
            raise AssertionError("of another table")

    feed(filled, 2)
    with pytest.raises(StalePlan, match="another table has the name"):
        operator(start=first + 1, end=second + 1, process=swapped).execute(NOTHING)


def test_a_hold_keeps_the_history_of_the_next_run_and_goes_along(filled: Filled) -> None:
    keeping = Context(ti=SimpleNamespace(dag_id="d", task_id="t", map_index=-1))  # type: ignore[typeddict-item]
    name, times = "airflow d.t u2", [feed(filled, number) for number in range(3)]

    def stands() -> tuple[str, int, bool]:
        maintain(filled.catalog, filled.root, now_ms=times[-1] + 30 * 86_400_000)
        with filled.catalog.read() as session:
            [found] = list_holds(session)
        return found.name, found.at, found.dropped_at is None

    def run(start: int, end: int, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = operator(start=start, end=end, hold=True, **more).execute(keeping)
        return answer

    assert run(0, times[0] + 1, snapshot=True)["changes"] == 1
    assert stands() == (name, times[0], True), "and not where the table is"
    for before, at in pairwise(times):
        with pytest.raises(ZeroDivisionError):
            run(before + 1, at + 1, process=lambda part, context: 1 / 0)
        assert stands() == (name, before, True), "a run that fails moves nothing"
        assert run(before + 1, at + 1)["changes"] == 1
        assert stands() == (name, at, True)
    with pytest.raises(AirflowFailException, match="it can be read since"):
        run(times[0] + 1, times[1] + 1)
    assert run(times[1] + 1, times[2] + 1, snapshot=True)["changes"] == 3
    assert stands() == (name, times[2], True), "it does not go back"

    times.append(feed(filled, 3))
    HoldStore(filled.catalog).drop(name, "by hand")
    assert run(times[2] + 1, times[3] + 1)["changes"] == 1, "taken anew, and moved"
    assert stands() == (name, times[3], True)
    times.append(feed(filled, 4))

    def dropped(part: Slice, context: Context) -> None:
        HoldStore(filled.catalog).drop(name, "by hand")

    assert run(times[3] + 1, times[4] + 1, process=dropped)["result"] is None, "the slice was read all the same"
    assert stands() == (name, times[3], False)


@pytest.fixture
def keyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    connect(tmp_path, monkeypatch)
    scene = KeyedScene(tmp_path, drawn(11, ticks=9), monkeypatch.setattr)
    scene.add_table("orders")
    yield scene
    scene.close()


def test_slices_of_a_table_whose_rows_change_add_up_to_it(keyed: KeyedScene) -> None:
    ends: list[int] = []
    states: list[Rows] = []
    for tick in keyed.case.ticks:
        keyed.run([tick])
        ends.append(keyed.table(ItemId("u2")).upper)
        rows = keyed.read("orders")
        states.append(rows_of(rows, rows.schema.names))
    total: Rows = Counter()
    went = 0
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        total, answer = _plus(total, start=start, end=end, snapshot=number == 0)
        went += answer["deletes"]
        assert total == states[number], f"after slice {number}"
    assert went > 0
    # A cleared run in the middle, and one over several intervals.
    again, _ = _plus(states[2], start=ends[2], end=ends[6])
    assert again == states[6]


def _plus(total: Rows, **bounds: Any) -> tuple[Rows, dict[str, Any]]:
    found = Counter(total)

    def add(part: Slice, context: Context) -> None:
        with part.open() as batches:
            for batch in batches:
                diffs, *own = (column.to_pylist() for column in batch.columns[1:])
                for diff, row in zip(diffs, map(repr, zip(*own, strict=True)), strict=True):
                    found[row] += diff

    answer = operator(process=add, system_columns=True, **bounds).execute(NOTHING)
    return Counter({row: count for row, count in found.items() if count}), answer
