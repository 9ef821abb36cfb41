"""Follows the change stream of a table: goes on with what comes, until the caller stops or a time is reached.

It looks at the catalog now and then. Between two looks it holds nothing but how far it has come.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import inf

import pyarrow as pa
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item
from airflow_provider_mzshare.control.catalog.queries.changes import gaps_near
from airflow_provider_mzshare.control.lifecycle.change_stream import (
    Asked,
    Stream,
    begin,
    not_live_now,
    schema_of,
    table_named,
    wanted_at,
)
from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables, ignore
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.changes import check_end
from airflow_provider_mzshare.core.ticklog.state import TableStatus
from airflow_provider_mzshare.errors import NotReadable

POLL_SECONDS = 1.0


@contextmanager
def follow_changes(
    catalog: Catalog,
    warehouse: str,
    name: str,
    asked: Asked,
    *,
    poll_seconds: float = POLL_SECONDS,
    timeout: float | None = None,
    not_live: NotLiveTables = ignore,
) -> Iterator[pa.RecordBatchReader]:
    """The changes of a table as ``open_changes`` has them, and then those that come.

    Returns when the stream can begin: a table that a backfill brings up or heals has states that nobody should see, so
    that is waited for.

    :param timeout: seconds after which it ends, with all that is final then; None: never.
    :param not_live: what to do about a table that is not live when it is looked at first, or that stalls meanwhile.
    """
    with catalog.read() as session:
        table_id = table_named(session, name).id
    deadline = None if timeout is None else time.monotonic() + timeout
    following = _Following(catalog, warehouse, table_id, asked, poll_seconds, deadline, not_live)
    stream = following.begun()
    if stream is None:
        with catalog.read() as session:
            table = get_table_item(session, table_id)
            schema = schema_of(wanted_at(session, table, asked, table.upper), progress=asked.progress)
        yield schema.empty_table().to_reader()
        return
    with closing(stream.explained(catalog, following.batches(stream))) as batches:
        yield pa.RecordBatchReader.from_batches(stream.schema, batches)


@dataclass
class _Following:
    """:param deadline: by the monotonic clock. :param seen: how the table was when it was looked at last."""

    catalog: Catalog
    warehouse: str
    table_id: ItemId
    asked: Asked
    poll_seconds: float
    deadline: float | None
    not_live: NotLiveTables
    seen: TableStatus | None = None

    def begun(self) -> Stream | None:
        """None: the time is up before there is anything to begin with."""
        while True:
            stream = None
            with self._look() as (session, table):
                if self._can_begin(table):
                    end = table.upper if self.asked.up_to is None else min(self.asked.up_to, table.upper)
                    stream = begin(session, self.warehouse, table, replace(self.asked, up_to=end))
            if stream is not None:
                return stream
            if not self._waits():
                return None

    def batches(self, stream: Stream) -> Iterator[pa.RecordBatch]:
        up_to = stream.bounds.up_to
        while True:
            yield from stream.batches(self.catalog, up_to)
            if stream.reached == self.asked.up_to or not self._waits():
                return
            up_to = self._final(stream)

    def _final(self, stream: Stream) -> int:
        """How far the stream can go now."""
        with self._look() as (session, table):
            up_to = table.upper if self.asked.up_to is None else min(self.asked.up_to, table.upper)
            if table.backfill_id is not None or up_to <= stream.reached:
                return stream.reached
            if up_to == self.asked.up_to:
                bounds = replace(stream.bounds, up_to=up_to, upper=table.upper)
                check_end(bounds, gaps_near(session, table, [up_to]))
            if wanted_at(session, table, self.asked, up_to - 1).schema != stream.wanted.schema:
                raise NotReadable(
                    f"{table.display} has got other columns than those that are followed",
                    hint="begin anew, or name the columns",
                )
            return up_to

    @contextmanager
    def _look(self) -> Iterator[tuple[Session, TableItem]]:
        """The table as it is now. Once the catalog is let go, the reader is told if nothing comes of it."""
        with self.catalog.read() as session:
            table = get_table_item(session, self.table_id)
            if table.status == "dropped":
                raise NotReadable(f"{table.display} was dropped")
            yield session, table
            news = self.seen is None or (table.status == "stalled" and self.seen != "stalled")
            tables = not_live_now(session, table) if news and not self.asked.is_final(table.upper) else []
        self.seen = table.status
        if tables:
            self.not_live(tables)

    def _can_begin(self, table: TableItem) -> bool:
        if table.upper == 0 or table.backfill_id is not None:
            return False
        first = self.asked.as_of
        return first is None or first < table.upper or (first == table.upper and not self.asked.snapshot)

    def _waits(self) -> bool:
        """Wait until it is time to look again. False: the time is up."""
        left = inf if self.deadline is None else self.deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(self.poll_seconds, left))
        return True
