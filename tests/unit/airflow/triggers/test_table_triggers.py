"""The trigger of asset watchers: when it fires, what it tells, and what it remembers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from airflow.sdk import Asset, AssetWatcher
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from airflow.serialization.encoders import encode_trigger
from airflow.triggers.base import BaseEventTrigger
from airflow.triggers.shared_stream import SharedStreamManager

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.queries.uppers import TableUpper
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.triggers.tables import TableUpdatedTrigger
from airflow_provider_mzshare.triggers.watching import Seen, Wish
from tests.support.catalog import Log, add_source, add_tables, wrote
from tests.support.looks import looks, until

CLASSPATH = "airflow_provider_mzshare.triggers.tables.TableUpdatedTrigger"
KWARGS = {
    "table": "public.orders",
    "every_ticks": None,
    "mz_timestamp": None,
    "position": {"0": 10},
    "mzshare_conn_id": "mz",
    "poll_interval": 0.5,
}


def upper(tick: int, rows: int = 0, *, table: str = "u2", generation: int = 1, offset: int = 0) -> TableUpper:
    position = Position({"0": offset})
    return TableUpper(ItemId(table), "t", generation, tick, 1_000 + tick, position, rows)


def fires(wish: Wish, *levels: TableUpper, seen: Seen | None = None) -> list[int]:
    """The ticks at which a watcher fires that sees these levels one after the other."""
    ticks = []
    for level in levels:
        if wish.is_met(level, seen):
            seen = Seen.of(level)
            ticks.append(level.tick)
    return ticks


def test_the_wire_format_is_pinned() -> None:
    assert TableUpdatedTrigger(**KWARGS).serialize() == (CLASSPATH, KWARGS)
    assert TableUpdatedTrigger(**KWARGS, colour="red").serialize() == (CLASSPATH, KWARGS)
    assert json.loads(json.dumps(KWARGS)) == KWARGS
    assert TableUpdatedTrigger("t").serialize()[1] == {
        "table": "t",
        "every_ticks": None,
        "mz_timestamp": None,
        "position": None,
        "mzshare_conn_id": "mzshare_default",
        "poll_interval": 5.0,
    }


def test_it_survives_airflows_own_encoding() -> None:
    encoded = encode_trigger(TableUpdatedTrigger(**KWARGS))
    stored = json.loads(json.dumps(encoded["kwargs"]))
    again = TableUpdatedTrigger(**{name: smart_decode_trigger_kwargs(value) for name, value in stored.items()})
    assert again.serialize() == (CLASSPATH, KWARGS)


def test_an_asset_can_be_watched_with_it() -> None:
    trigger = TableUpdatedTrigger("orders")
    asset = Asset("mzshare://public/orders", watchers=[AssetWatcher(name="orders", trigger=trigger)])
    assert asset.watchers[0].trigger is trigger
    assert BaseEventTrigger.hash(*trigger.serialize()) == BaseEventTrigger.hash(
        *TableUpdatedTrigger("orders").serialize()
    )


def test_new_rows_fire_and_ticks_without_rows_do_not() -> None:
    assert fires(Wish(), upper(1), upper(2, 5), upper(3, 5), upper(9, 8), upper(10, 8)) == [2, 9]


def test_a_new_generation_or_a_table_created_anew_has_told_nothing_yet() -> None:
    assert fires(Wish(), upper(1, 50), upper(2, 20, generation=2), upper(3, 20, generation=2)) == [1, 2]
    assert fires(Wish(), upper(1, 50), upper(1, 20, table="u9")) == [1, 1]
    assert fires(Wish(mz_timestamp=1), upper(1), upper(2), upper(1, table="u9")) == [1, 1]


def test_every_n_ticks_counts_what_was_jumped_over_once() -> None:
    assert fires(Wish(every_ticks=3), *(upper(tick) for tick in (1, 2, 3, 4, 5, 6, 14, 15, 16))) == [3, 6, 14, 15]


def test_a_point_fires_once_when_everything_before_it_is_there() -> None:
    assert fires(Wish(mz_timestamp=1_003), *(upper(tick) for tick in (1, 2, 4, 5))) == [4]
    assert fires(Wish(position={"0": 30}), *(upper(tick, offset=10 * tick) for tick in (1, 2, 3, 4))) == [3]


def test_what_was_told_before_a_restart_is_not_told_again() -> None:
    told = Seen.from_json(json.loads(json.dumps(Seen.of(upper(5, 50)).__dict__)))
    assert fires(Wish(), upper(5, 50), upper(6, 51), seen=told) == [6]
    assert fires(Wish(every_ticks=5), upper(5), upper(9), upper(11), seen=told) == [11]
    assert fires(Wish(mz_timestamp=1), upper(9), seen=told) == []
    assert Seen.from_json(None) is None
    assert Seen.from_json({"tick": 3}) is None


def test_only_one_wish_at_a_time() -> None:
    with pytest.raises(ValueError, match="only one"):
        TableUpdatedTrigger("t", every_ticks=3, mz_timestamp=5)
    with pytest.raises(ValueError, match="1 or more"):
        TableUpdatedTrigger("t", every_ticks=0)
    with pytest.raises(ValueError, match="offset"):
        TableUpdatedTrigger("t", position={"0": -1})
    assert len({Wish().key, Wish(every_ticks=3).key, Wish(mz_timestamp=3).key}) == 3


class Memory:
    """Airflow's store of one asset, as far as the trigger uses it; the real one needs a running triggerer."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    async def aget(self, key: str) -> Any:
        return self.kept.get(key)

    async def aset(self, key: str, value: Any) -> None:
        self.kept[key] = json.loads(json.dumps(value))


def test_all_watchers_of_a_catalog_share_one_query(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    add_tables(catalog, source_id, "a", "b")
    log = Log(catalog, source_id)
    log.tick()
    told: dict[str, list[dict[str, Any]]] = {}

    async def watch(streams: SharedStreamManager, number: int, trigger: TableUpdatedTrigger) -> None:
        """As the triggerer runs a watcher."""
        key = trigger.shared_stream_key()
        assert key is not None
        stream = streams.subscribe(trigger_id=number, trigger=trigger, key=key)
        try:
            async for event in trigger.filter_shared_stream(stream):
                told.setdefault(f"{trigger.table}{trigger.every_ticks or ''}", []).append(event.payload)
        finally:
            await streams.unsubscribe(number, key)

    def triggers() -> list[TableUpdatedTrigger]:
        return [
            TableUpdatedTrigger(table, every_ticks=every, mzshare_conn_id="mz", poll_interval=0.2)
            for table, every in (("a", None), ("b", None), ("b", 2))
        ]

    async def scenario() -> None:
        streams = SharedStreamManager()
        with looks("tables.upper >") as times:
            tasks = [asyncio.create_task(watch(streams, n, one)) for n, one in enumerate(triggers() * 5)]
            await until(lambda: len(times) >= 3)
            a = log.store.members()[0]
            tick = log.mint(5)
            log.commit(tick, {a.table_id: wrote(a, version=1, rows=4)})
            await until(lambda: "a" in told and "b2" in told)
            await until(lambda: len(times) >= 6)
        assert len(times) <= (times[-1] - times[0]) / 0.2 + 2
        update = {"table": "a", "tick": 2, "mz_timestamp": tick.mz_timestamp, "rows": 4}
        assert told["a"] == [update] * 5
        assert told["b2"] == [{**update, "table": "b", "rows": 0}] * 5
        assert "b" not in told
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert not streams._groups

    asyncio.run(scenario())


def test_alone_it_polls_for_itself_and_remembers_after_telling(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    add_tables(catalog, source_id, "t")
    log, memory = Log(catalog, source_id), Memory()
    log.tick()

    async def first(trigger: TableUpdatedTrigger) -> dict[str, Any]:
        trigger.asset_state_store = memory  # type: ignore[assignment]
        events: AsyncIterator[Any] = trigger.run()
        payload: dict[str, Any] = (await asyncio.wait_for(anext(events), 20)).payload
        kept = dict(memory.kept)
        following = asyncio.ensure_future(anext(events))
        await until(lambda: memory.kept != kept)
        following.cancel()
        await asyncio.wait([following])
        return payload

    async def scenario() -> None:
        watcher = {"table": "t", "every_ticks": 1, "mzshare_conn_id": "mz", "poll_interval": 0.1}
        assert (await first(TableUpdatedTrigger(**watcher)))["tick"] == 1
        log.tick()
        assert (await first(TableUpdatedTrigger(**watcher)))["tick"] == 2, "the first tick was told before"

    asyncio.run(scenario())
