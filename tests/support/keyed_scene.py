"""Tables with keys on a stream in memory: the apps' own log, pass and commits, without Spark or a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import select, text

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item
from airflow_provider_mzshare.control.catalog.queries.reads import ReadPoint, table_read_point
from airflow_provider_mzshare.control.lifecycle.check_table import TableCheck, check_table
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_table
from airflow_provider_mzshare.control.lifecycle.verification import verify_table
from airflow_provider_mzshare.control.lifecycle.verified import Verified
from airflow_provider_mzshare.control.relations.counting import statistics
from airflow_provider_mzshare.control.relations.dialects import SQLite
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from tests.support.catalog import new_sqlite
from tests.support.driven import DrivenBackfill, DrivenIngestion
from tests.support.keyed_oracle import Case, Record, State, Tick, check_errors, check_rows, state_hash

Spoil = Callable[[Sequence[Record]], Sequence[Record]]


class KeyedScene:
    """:param patch: a function that sets an attribute, for the upstream that ``verify`` asks.

    ``upstream`` are the records that are there now; ``spoil`` changes what the writers read.
    """

    def __init__(self, folder: Path, case: Case, patch: Callable[[str, Any], None]) -> None:
        self.case, self.upstream = case, list(case.records)
        self.excuse: str | None = None
        self.spoil: Spoil | None = None
        self.root = str(folder / "warehouse")
        Path(self.root).mkdir()
        self.catalog = Catalog(new_sqlite(folder / "catalog.db"))
        self.catalog.ensure()
        with self.catalog.write() as session:
            self.source_id = items.create_source(
                session,
                name=("public", "s"),
                spec=KafkaSourceSpec(connection="broker", topic="topic"),
                incarnation="one",
                start=Position(),
            )
        self.app = DrivenIngestion(self.catalog, self.root, self.source_id, self.records, JobId("ingest"))
        for name in ("open_upstream", "open_records"):
            patch(f"airflow_provider_mzshare.control.lifecycle.verification.{name}", lambda *_, **__: _Upstream(self))

    def close(self) -> None:
        self.catalog.close()

    def records(self, lower: Position, upper: Position) -> list[pa.RecordBatch]:
        lanes = {int(lane): (lower[lane], upper[lane]) for lane in upper}
        read = self.spoil(self.upstream) if self.spoil else self.upstream
        return [Case(self.case.shape, (Tick(1, lanes),), tuple(read)).batch()]

    def add_table(self, name: str = "t", spec: TableSpec | None = None) -> ItemId:
        with self.catalog.write() as session:
            return items.create_table(
                session, name=("public", name), source_id=self.source_id, spec=spec or self.case.shape.spec
            )

    def run(self, ticks: Sequence[Tick] | None = None) -> None:
        """Ticks of the case, each to where it ends; one that moves nothing is an empty tick."""
        for tick in self.case.ticks if ticks is None else ticks:
            upper, state = Position({lane: end for lane, (_, end) in tick.ranges.items()}), self.app.store.load()
            if upper == state.upper:
                self.app.tick_without_records()
            else:
                self.app.tick(upper)

    def restart(self) -> None:
        """Another app takes over, which knows nothing of what this one did."""
        self.app = DrivenIngestion(self.catalog, self.root, self.source_id, self.records, JobId("ingest"))

    def backfill(self, table_id: ItemId, *, run: int = 1) -> list[tuple[int, int]]:
        """:param run: which run of the backfill's app this is."""
        return DrivenBackfill(self.catalog, self.root, table_id, self.source_id, self.records, run=run).run()

    def table(self, table_id: ItemId) -> TableItem:
        with self.catalog.read() as session:
            return get_table_item(session, table_id)

    def times(self) -> list[int]:
        """Of all ticks."""
        with self.catalog.read() as session:
            return list(session.scalars(select(TickRow.mz_timestamp).order_by(TickRow.number)))

    def messages(self, table_id: ItemId) -> int:
        """How many records it has got, as its statistics say."""
        query = statistics(SQLite())
        with self.catalog.read() as session:
            found = session.execute(text(f"SELECT messages FROM ({query}) AS s WHERE s.id = :id"), {"id": table_id})
            return int(found.scalar_one())

    def point(self, table_id: ItemId) -> ReadPoint:
        with self.catalog.read() as session:
            return table_read_point(session, table_id)

    def read(self, name: str = "t", *, tick: int | None = None, errors: bool = False) -> pa.Table:
        return read_table(self.catalog, self.root, name, Query(errors=errors, with_system_columns=True), tick=tick)

    def check_state(self, state: State, name: str = "t", *, tick: int | None = None, texts: bool = True) -> None:
        """:param texts: also what errors say."""
        check_rows(self.case.shape, state, self.read(name, tick=tick))
        check_errors(state, self.read(name, tick=tick, errors=True), texts=texts)

    def verify(self, table_id: ItemId, *, everything: bool = False) -> Verified:
        table = self.table(table_id)
        return verify_table(self.catalog, FixedConnections({}), self.root, table, everything=everything)

    def prove(self, table_id: ItemId, state: State, *, everything: bool = False) -> Verified:
        """It is exact, with the oracle's numbers, and whole."""
        found = self.verify(table_id, everything=everything)
        assert (found.verdict, found.rows, found.errors) == ("exact", len(state.rows), len(state.errors))
        assert found.data_hash == f"{state_hash(self.case.shape, state):032x}"
        return found

    def check(self, table_id: ItemId, *, deep: bool = True) -> TableCheck:
        return check_table(self.catalog, self.root, self.table(table_id), deep=deep)


class _Upstream:
    """What a check asks of an upstream and of its records."""

    def __init__(self, scene: KeyedScene) -> None:
        self._scene = scene

    def check_identity(self, incarnation: str) -> None:
        assert incarnation == "one"

    def begin_offsets(self) -> Position:
        return Position()

    def read(self, lane: int, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        scene = self._scene
        batch = Case(scene.case.shape, (Tick(1, {lane: (lower, upper)}),), tuple(scene.upstream)).batch()
        yield from (batch.slice(begin, 7) for begin in range(0, batch.num_rows, 7))

    def excuse(self) -> str | None:
        return self._scene.excuse

    def __enter__(self) -> _Upstream:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing is open."""
