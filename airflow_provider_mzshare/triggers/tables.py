"""Watches tables, so that an asset is updated when data has arrived."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.queries.uppers import TableUpper, table_uppers
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.hooks.base import DEFAULT_CONN_ID
from airflow_provider_mzshare.triggers.catalogs import LoopCatalog, backoff, find_settings
from airflow_provider_mzshare.triggers.watching import Seen, Wish

log = logging.getLogger(__name__)

Snapshot = Mapping[Name, TableUpper]


class TableUpdatedTrigger(BaseEventTrigger):
    """Fire when a table has got what is waited for; for an ``AssetWatcher``.

    Levels are compared, not changes: so an update during a restart is reported afterwards. Without a condition,
    every look that finds new rows fires. The payload is ``{table, tick, mz_timestamp, rows}``; the same update has the
    same payload, whichever trigger reports it. All watchers of a catalog with one interval share one query.

    :param table: the table's name, ``[schema.]name``. It need not exist yet.
    :param every_ticks: fire after every so many ticks of the source.
    :param mz_timestamp: fire once, when everything up to this time is in the table.
    :param position: fire once, when everything before these offsets, by partition, is in the table.
    :param mzshare_conn_id: the connection that says where the catalog is.
    :param poll_interval: seconds between two looks.
    """

    def __init__(
        self,
        table: str,
        every_ticks: int | None = None,
        mz_timestamp: int | None = None,
        position: Mapping[str, int] | None = None,
        mzshare_conn_id: str = DEFAULT_CONN_ID,
        poll_interval: float = 5.0,
        **later: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.every_ticks = every_ticks
        self.mz_timestamp = mz_timestamp
        self.position = dict(position) if position is not None else None
        self.mzshare_conn_id = mzshare_conn_id
        self.poll_interval = poll_interval
        self._wish = Wish(every_ticks=every_ticks, mz_timestamp=mz_timestamp, position=self.position)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            "airflow_provider_mzshare.triggers.tables.TableUpdatedTrigger",
            {
                "table": self.table,
                "every_ticks": self.every_ticks,
                "mz_timestamp": self.mz_timestamp,
                "position": self.position,
                "mzshare_conn_id": self.mzshare_conn_id,
                "poll_interval": self.poll_interval,
            },
        )

    # ── one poll for all watchers of a catalog ────────────────────────────────────────────────────────────────────────

    def shared_stream_key(self) -> Hashable | None:
        return ("mzshare-tables", self.mzshare_conn_id, self.poll_interval)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncGenerator[Snapshot]:
        """All live tables of the catalog, one snapshot per look. A catalog that does not answer is asked again."""
        interval = float(kwargs["poll_interval"])
        catalog = LoopCatalog((await find_settings(kwargs["mzshare_conn_id"])).catalog_url)
        failures = 0
        try:
            while True:
                try:
                    snapshot = await catalog.ask(_all_uppers)
                except TransientError as error:
                    failures += 1
                    log.warning("%s", error.line)
                else:
                    failures = 0
                    yield snapshot
                await asyncio.sleep(backoff(interval, failures))
        finally:
            catalog.close_soon()

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Snapshot]) -> AsyncIterator[TriggerEvent]:
        name = typed_name(self.table)
        seen = await self._remembered()
        async for snapshot in shared_stream:
            table = snapshot.get((name.schema, name.name))
            if table is None or not self._wish.is_met(table, seen):
                continue
            seen = Seen.of(table)
            yield TriggerEvent(self._wish.update(table).to_payload())
            # After the event: it may be reported twice, but is never lost.
            await self._remember(seen)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """For an Airflow that does not share streams between triggers."""
        async with aclosing(self.open_shared_stream(self.serialize()[1])) as stream:
            async for event in self.filter_shared_stream(stream):
                yield event

    # ── what was told, beyond this process ────────────────────────────────────────────────────────────────────────────

    @property
    def _memory_key(self) -> str:
        return f"mzshare_{self._wish.key}"

    async def _remembered(self) -> Seen | None:
        if self.asset_state_store is None:
            return None
        try:
            return Seen.from_json(await self.asset_state_store.aget(self._memory_key))
        except (AirflowRuntimeError, ValueError) as error:
            log.warning("table %s: the last reported tick cannot be read: %s", self.table, error)
            return None

    async def _remember(self, seen: Seen) -> None:
        if self.asset_state_store is None:
            return
        try:
            await self.asset_state_store.aset(self._memory_key, asdict(seen))
        except (AirflowRuntimeError, ValueError) as error:
            # A trigger of several assets has no single place to remember in: after a restart it may report once more.
            log.warning("table %s: the reported tick cannot be stored: %s", self.table, error)


def _all_uppers(catalog: Catalog) -> Snapshot:
    with catalog.read() as session:
        return table_uppers(session)
