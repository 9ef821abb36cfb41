"""The trigger of the sensor: its wire format, its one event, and the poller it shares with others."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable
from typing import Any

import pytest
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from airflow.serialization.encoders import encode_trigger

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import abandon_tables
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from airflow_provider_mzshare.errors import CatalogMissing, CatalogUnreachable
from airflow_provider_mzshare.triggers import poller
from airflow_provider_mzshare.triggers.catalogs import (
    BACKOFF_SECONDS,
    MIN_INTERVAL,
    LoopCatalog,
    backoff,
    find_settings,
)
from airflow_provider_mzshare.triggers.offsets import OffsetsConvergedTrigger
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import add_source, add_tables
from tests.support.looks import looks, until

CLASSPATH = "airflow_provider_mzshare.triggers.offsets.OffsetsConvergedTrigger"
KWARGS = {
    "table": "public.orders",
    "max_lag": 2,
    "mzshare_conn_id": "mz",
    "poll_interval": 0.5,
    "table_id": "u7",
    "generation": 3,
}


def waiting_for(table: str, **kwargs: Any) -> OffsetsConvergedTrigger:
    return OffsetsConvergedTrigger(
        **{"table": table, "max_lag": 1, "mzshare_conn_id": "mz", "poll_interval": 0.1} | kwargs
    )


async def fired(trigger: OffsetsConvergedTrigger) -> dict[str, Any]:
    [told] = [event async for event in trigger.run()]
    payload: dict[str, Any] = told.payload
    assert json.loads(json.dumps(payload)) == payload
    return payload


def nothing_is_left() -> bool:
    names = {task.get_name() for task in asyncio.all_tasks()}
    return not poller._pollers and "mzshare-poller" not in names


def test_the_wire_format_is_pinned() -> None:
    trigger = OffsetsConvergedTrigger(**KWARGS)
    assert trigger.serialize() == (CLASSPATH, KWARGS)
    assert json.loads(json.dumps(KWARGS)) == KWARGS


def test_it_survives_airflows_own_encoding() -> None:
    encoded = encode_trigger(OffsetsConvergedTrigger(**KWARGS))
    stored = json.loads(json.dumps(encoded["kwargs"]))
    again = OffsetsConvergedTrigger(**{name: smart_decode_trigger_kwargs(value) for name, value in stored.items()})
    assert (encoded["classpath"], again.serialize()) == (CLASSPATH, (CLASSPATH, KWARGS))


def test_arguments_of_an_older_and_of_a_newer_version_are_taken() -> None:
    first = {name: KWARGS[name] for name in ("table", "max_lag", "mzshare_conn_id", "poll_interval")}
    assert OffsetsConvergedTrigger(**first).serialize()[1] == {**first, "table_id": None, "generation": None}
    assert OffsetsConvergedTrigger(**KWARGS, colour="red").serialize()[1] == KWARGS


def test_it_arms_awaits_and_tells_the_certificate(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)

    def status() -> str:
        with catalog.read() as session:
            return convergences(session, [late])[late].status

    async def scenario() -> dict[str, Any]:
        telling = asyncio.create_task(fired(waiting_for("late")))
        await until(lambda: poller._pollers)
        assert status() == "backfilling"
        backfill.follow()
        await until(lambda: status() == "converging")
        log.tick()
        told = await telling
        await until(nothing_is_left)
        return told

    told = asyncio.run(scenario())
    assert (told["outcome"], told["table"], told["error"]) == ("converged", "late", "")
    assert (told["result"]["table_id"], told["result"]["backfill_id"]) == (late, backfill.id)


def test_it_fails_in_the_words_of_the_app(catalog: Catalog) -> None:
    log, _ = add_late_tables(catalog, "late")
    Backfilling(catalog, log.source_id).end("failed", "MissingProgram: no java")
    told = asyncio.run(fired(waiting_for("late")))
    assert (told["outcome"], told["result"]) == ("failed", None)
    assert told["error"].endswith("failed: MissingProgram: no java")
    assert told["hint"] == "mzshare status late"


def test_it_fails_at_once_when_a_table_is_given_up_because_its_app_dies(catalog: Catalog) -> None:
    log, _ = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)
    backfill.end("lost", "its process is gone")

    async def scenario() -> dict[str, Any]:
        telling = asyncio.create_task(fired(waiting_for("late")))
        await until(lambda: poller._pollers)
        assert not telling.done(), "one that is lost is started again"
        with catalog.write() as session:
            abandon_tables(session, backfill.id, backfill.job, "its app died 5 times in a row")
        return await telling

    told = asyncio.run(scenario())
    assert (told["outcome"], told["error"]) == ("failed", "table late is stalled: its app died 5 times in a row")
    assert "ALTER TABLE late RESUME" in told["hint"]
    assert "mzshare logs late" in told["hint"]


def test_a_table_created_anew_under_the_name_is_not_the_one_waited_for(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    with catalog.write() as session:
        items.drop_table(session, late)
    add_tables(catalog, log.source_id, "late")
    told = asyncio.run(fired(waiting_for("late", table_id=late)))
    assert (told["outcome"], told["error"]) == ("failed", "table late was dropped")


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"table": "nobody"}, "table 'nobody' does not exist"),
        ({"table": "no name"}, "is not a name"),
        ({"mzshare_conn_id": "elsewhere"}, "elsewhere"),
    ],
)
def test_what_cannot_be_is_told_at_once(catalog: Catalog, kwargs: dict[str, str], error: str) -> None:
    told = asyncio.run(fired(waiting_for(**{"table": "t"} | kwargs)))
    assert told["outcome"] == "failed"
    assert error in told["error"]


def test_triggers_share_one_look_and_leave_one_by_one(catalog: Catalog) -> None:
    log, _ = add_late_tables(catalog, "a", "b")
    backfill = Backfilling(catalog, log.source_id)

    async def scenario() -> None:
        with looks() as times:
            waits = [asyncio.create_task(fired(waiting_for("ab"[n % 2], poll_interval=0.2))) for n in range(20)]
            await until(lambda: len(times) >= 4)
            assert len(poller._pollers) == 1
            for wait in waits[:15]:
                wait.cancel()
            await asyncio.wait(waits[:15])
            before = len(times)
            await until(lambda: len(times) >= before + 2)
        assert len(times) <= (times[-1] - times[0]) / 0.2 + 2, "one look an interval, whatever the number of triggers"
        backfill.follow()
        backfill.arm()
        log.tick()
        told = await asyncio.gather(*waits[15:])
        assert [one["outcome"] for one in told] == ["converged"] * 5
        await until(nothing_is_left)

    asyncio.run(scenario())
    assert [thread for thread in threading.enumerate() if "asyncio" in thread.name] == []


def test_the_most_impatient_trigger_sets_the_pace(catalog: Catalog) -> None:
    add_late_tables(catalog, "late")

    async def scenario() -> None:
        with looks() as times:
            patient = asyncio.create_task(fired(waiting_for("late", poll_interval=600)))
            await until(lambda: len(times) == 1)
            hasty = asyncio.create_task(fired(waiting_for("late", poll_interval=0.1)))
            await until(lambda: len(times) >= 4)
            hasty.cancel()
            await asyncio.wait([hasty])
            settled = len(times)
            with pytest.raises(AssertionError, match="more looks"):
                await until(lambda: len(times) > settled + 1, timeout=1, what="more looks")
            patient.cancel()
            await asyncio.wait([patient])
            await until(nothing_is_left)

    asyncio.run(scenario())


def test_a_catalog_that_is_none_fails_all_and_a_newcomer_looks_anew(catalog: Catalog) -> None:
    add_late_tables(catalog, "late")

    async def scenario() -> list[dict[str, Any]]:
        settings = await find_settings("mz")
        file = settings.home / "catalog.db"
        aside = file.rename(file.with_suffix(".aside"))
        told = await asyncio.gather(*(fired(waiting_for("late")) for _ in range(5)))
        aside.rename(file)
        wait = asyncio.create_task(fired(waiting_for("late")))
        with looks() as times:
            await until(lambda: len(times) >= 2)
        wait.cancel()
        await asyncio.wait([wait])
        await until(nothing_is_left)
        return list(told)

    told = asyncio.run(scenario())
    wanted = CatalogMissing("x").message.split(" at ")[0]
    assert [one["outcome"] for one in told] == ["failed"] * 5
    assert all(one["error"].startswith(wanted) for one in told)


def test_a_loop_that_ends_takes_the_poller_with_it(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    add_tables(catalog, source_id, "t")

    async def scenario() -> Awaitable[Any]:
        wait = asyncio.create_task(fired(waiting_for("t")))
        await until(lambda: poller._pollers)
        return wait

    asyncio.run(scenario())
    assert not poller._pollers


def test_the_pause_grows_with_each_failure_and_never_shrinks() -> None:
    assert [backoff(1, failures) for failures in (0, 1, 2, 3)] == [1, 2, 4, 8]
    assert backoff(1, 50) == BACKOFF_SECONDS
    assert backoff(300, 5) == 300
    assert backoff(0, 0) == MIN_INTERVAL


def test_a_catalog_is_closed_only_when_its_last_question_is_answered(catalog: Catalog) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(opened: Catalog) -> None:
        with opened.read():
            asked.set()
            go_on.wait(20)

    async def scenario() -> None:
        one = LoopCatalog(catalog.url)
        asking = asyncio.create_task(one.ask(slow))
        await until(asked.is_set)
        asking.cancel()
        await asyncio.wait([asking])
        one.close_soon()
        assert not one._closed, "who leaves does not wait"
        go_on.set()
        await until(lambda: one._closed)
        with pytest.raises(CatalogUnreachable, match="closed"):
            await one.ask(slow)

    asyncio.run(scenario())
