"""A table that maintenance works on, with files or without, for tests of what a read hold keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import select, update

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import database_ms, wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, ReadHoldRow
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.hold_rows import find_hold
from airflow_provider_mzshare.control.catalog.objects.lookup import get_table_item
from airflow_provider_mzshare.control.lifecycle.read_table import read_table
from airflow_provider_mzshare.control.supervision.leftovers import find_leftovers
from airflow_provider_mzshare.control.supervision.maintenance import Maintained, maintain
from airflow_provider_mzshare.control.supervision.warehouse import collection_folders, remove_collection
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.holds import Hold
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from tests.support.catalog import Log, add_source, add_tables
from tests.support.driven import DrivenBackfill
from tests.support.filled import Filled

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


class BareTable:
    """``orders`` with six ticks, of which the catalog alone knows."""

    id: ItemId
    source_id: ItemId

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog, self.folder, self.root = catalog, folder, str(folder / "warehouse")
        self.times: list[int] = []
        self.later = wall_ms() + 2 * DAY_MS
        """By then retention has passed all ticks but the last."""
        self._make()

    def _make(self) -> None:
        self.source_id = add_source(self.catalog)
        (self.id,) = add_tables(self.catalog, self.source_id, "orders")
        self._log = Log(self.catalog, self.source_id)
        for _ in range(6):
            self.tick()

    def tick(self) -> int:
        self.times.append(self._log.tick().mz_timestamp)
        return self.times[-1]

    def since(self) -> int:
        with self.catalog.read() as session:
            return get_table_item(session, self.id).since

    def maintain(self) -> Maintained:
        """Once more, two hours after the last time: what since has passed before has stood long enough."""
        self.later += 2 * HOUR_MS
        found = {one.table: one for one in maintain(self.catalog, self.root, now_ms=self.later)}
        assert not found["orders"].trouble
        return found["orders"]

    def hold_row(self, name: str) -> Hold | None:
        with self.catalog.read() as session:
            return find_hold(session, name)

    def silence(self, name: str, seconds: float) -> None:
        """As if the holder had been heard of so long ago by the database's clock."""
        with self.catalog.write() as session:
            heard = database_ms(session) - round(seconds * 1000)
            session.execute(update(ReadHoldRow).where(ReadHoldRow.name == name).values(heartbeat=heard))

    def drop(self) -> None:
        with self.catalog.write() as session:
            items.drop_table(session, self.id)


class HeldTable(BareTable):
    """The same with a row for each tick, whose files were merged after the fourth."""

    def _make(self) -> None:
        self._filled = Filled(self.catalog, self.folder)
        self.source_id = self._filled.source()
        self.id = self._filled.table(self.source_id, "orders", "id bigint")
        for number in range(1, 7):
            self.tick()
            if number == 4:
                compact(self.collection(), min_files=2)

    def tick(self) -> int:
        self.times.append(self._filled.feed(self.source_id, [{"id": len(self.times)}]).mz_timestamp)
        return self.times[-1]

    def collection(self) -> Collection:
        with self.catalog.read() as session:
            newest = select(CollectionRow.id).where(CollectionRow.table_id == self.id, CollectionRow.role == "data")
            name = session.scalars(newest.order_by(CollectionRow.generation.desc())).first()
        assert name is not None
        return Collection.open(self.root, name)

    def files(self) -> int:
        return len(list(Path(self.collection().uri).glob("*.parquet")))

    def rows_at(self, time: int) -> list[int]:
        return sorted(read_table(self.catalog, self.root, "orders", as_of_ms=time).column("id").to_pylist())

    def check_readable_from(self, at: int) -> None:
        """Files and all."""
        for number, time in enumerate(self.times, 1):
            if time >= at:
                assert self.rows_at(time) == list(range(number)), f"as of tick {number}"

    def resnapshot(self) -> int:
        """A new generation from the beginning, to the tick that swaps it in."""
        with self.catalog.write() as session:
            resnapshot_table(session, self.id)
        DrivenBackfill(self.catalog, self.root, self.id, self.source_id, self._records).run()
        return self.tick()

    def _records(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch]:
        rows: Sequence[Mapping[str, Any]] = [
            {"key": None, "value": json.dumps({"id": n}).encode(), "partition": 0, "offset": n, "timestamp": 0}
            for n in range(lower["0"], upper["0"])
        ]
        yield pa.RecordBatch.from_pylist(list(rows), INPUT_SCHEMA)

    def tidy(self) -> list[str]:
        return tidy(self.catalog, self.root)


def tidy(catalog: Catalog, root: str) -> list[str]:
    """Remove the folders that nobody can read, as the reconciler does; returns why."""
    folders = collection_folders(root)
    with catalog.read() as session:
        found = find_leftovers(session, folders)
    for one in found:
        for path in one.paths:
            remove_collection(root, path)
    return [one.why for one in found]
