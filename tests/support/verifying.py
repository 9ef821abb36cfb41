"""Tables on a real topic, written by the fan-out's own writer and commits, without Spark; and ways to spoil them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.connections import Connection, FixedConnections
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA, ROW
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.members import CatalogMember
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item
from airflow_provider_mzshare.control.lifecycle.verification import Verified, verify_table
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec
from airflow_provider_mzshare.core.ticklog.state import Done, Tick, Written
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import FileWritten, NewFiles, commit_tick
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, errors_schema
from airflow_provider_mzshare.storage.fanout.results import merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from tests.support.catalog import new_sqlite
from tests.support.kafka import consume, positions

JSON_SPEC = TableSpec(
    reference="topic",
    format="json",
    columns=(ColumnSpec(name="n", type="bigint"), ColumnSpec(name="name", type="text")),
)

Spoil = Callable[[pa.Table], pa.Table]


class Pipeline:
    """One source with a log of ticks; its tables get exactly the records of each tick, unless ``spoil`` is set.

    ``spoil`` changes the records before they are decoded: rows, hashes and certificates then agree with each other
    and not with the source.
    """

    def __init__(self, kafka: EmbeddedKafka, folder: Path, topic: str) -> None:
        self._kafka, self.topic = kafka, topic
        self.root = str(folder / "warehouse")
        Path(self.root).mkdir(parents=True, exist_ok=True)
        self.catalog = Catalog(new_sqlite(folder / "catalog.db"))
        self.catalog.ensure()
        connection = Connection("broker", "kafka", extra={"bootstrap.servers": kafka.bootstrap})
        self.connections = FixedConnections({"broker": connection})
        spec = KafkaSourceSpec(connection="broker", topic=topic)
        with open_upstream(self.connections, spec) as upstream:
            self.incarnation = upstream.describe().incarnation
            start = upstream.begin_offsets()
        with self.catalog.write() as session:
            self.source_id = items.create_source(
                session, name=("public", "s"), spec=spec, incarnation=self.incarnation, start=start
            )
        self.store = CatalogTickStore(self.catalog, self.source_id)
        self.holder = self.store.claim(JobId("ingest-1"))
        self.spoil: Spoil | None = None

    def close(self) -> None:
        self.catalog.close()

    def add_table(self, name: str = "t", spec: TableSpec = JSON_SPEC) -> ItemId:
        with self.catalog.write() as session:
            return items.create_table(session, name=("public", name), source_id=self.source_id, spec=spec)

    def table(self, table_id: ItemId) -> TableItem:
        with self.catalog.read() as session:
            return get_table_item(session, table_id)

    def tick(self, upper: Position | None = None) -> Tick:
        """One tick up to the present end of the topic, written and committed for all members."""
        lower = self.store.load().upper
        upper = upper or Position(positions(self._kafka, self.topic))
        if upper == lower:
            return self.store.mint_empty(self.holder, at=lower, incarnation=self.incarnation)
        tick = self.store.mint(self.holder, lower=lower, upper=upper, incarnation=self.incarnation)
        outcomes = {member.table_id: self._write(member, [tick]) for member in self.store.members()}
        self.store.commit(self.holder, tick.number, outcomes, {})
        return tick

    def backfill(self, table_id: ItemId) -> None:
        """Execute all ticks the table has missed as one group, and let it be cut over at the next tick."""
        backfill_id = self.table(table_id).backfill_id
        assert backfill_id is not None
        store = CatalogBackfillStore(self.catalog, self.source_id, backfill_id)
        holder = store.claim(JobId("backfill-1"))
        ticks = store.ticks(self.table(table_id).next_tick, 1_000)
        (member,) = store.members([table_id])
        outcomes = {table_id: self._write(member, ticks)}
        store.follow(holder, first=ticks[0].number, last=ticks[-1], outcomes=outcomes, stats={})
        with self.catalog.write() as session:
            assert arm_table(session, table_id)

    def verify(self, table_id: ItemId, **options: object) -> Verified:
        table = self.table(table_id)
        return verify_table(self.catalog, self.connections, self.root, table, **options)  # type: ignore[arg-type]

    def _write(self, member: CatalogMember, ticks: Sequence[Tick]) -> Done:
        records = self._records(ticks[0].lower, ticks[-1].upper)
        plan = _plan(self.root, member, ticks[0].number)
        for name, schema in ((member.data, plan.members[0].schema), (member.errors, errors_schema())):
            create_collection(self.root, name, schema)
        answers = write_partition(iter(records), plan.to_json())
        result = merge_results(row for batch in answers for row in batch.to_pylist()).get(member.table_id)
        written = []
        for role, name in (("errors", member.errors), ("data", member.data)):
            files = result.files[role] if result else []
            assert result is None or result.error is None
            rows, sums = sum(f.rows for f in files), f"{result.hash(role) if result else 0:032x}"
            version = self._commit(name, ticks[-1], [FileWritten(f.path, f.size, f.stats, time.time()) for f in files])
            first = ticks[0].mz_timestamp
            written.append(Written(name, version, rows, sums, ticks[-1].number, ticks[-1].mz_timestamp, first))
        return Done(tuple(written), rows=written[1].rows, errors=written[0].rows)

    def _commit(self, name: CollectionId, tick: Tick, files: Sequence[FileWritten]) -> int:
        result = commit_tick(
            Collection.open(self.root, name),
            mz_timestamp=tick.mz_timestamp,
            content=NewFiles(files),
            metadata={"mz_tick": str(tick.number), "mz_source": self.source_id},
            knows=lambda _: True,
            force=True,
        )
        assert result.version is not None
        return result.version

    def _records(self, lower: Position, upper: Position) -> list[pa.RecordBatch]:
        messages = [
            m for m in consume(self._kafka, self.topic) if lower[m.partition()] <= m.offset() < upper[m.partition()]
        ]
        columns = [
            [m.key() for m in messages],
            [m.value() for m in messages],
            [m.partition() for m in messages],
            [m.offset() for m in messages],
            [m.timestamp()[1] * 1_000 for m in messages],
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, INPUT_SCHEMA, strict=True)]
        records = pa.Table.from_arrays(arrays, schema=INPUT_SCHEMA)
        return (self.spoil(records) if self.spoil else records).combine_chunks().to_batches()


def _plan(root: str, member: CatalogMember, tick: int) -> FanoutPlan:
    folders = {"data_path": collection_uri(root, member.data), "errors_path": collection_uri(root, member.errors)}
    how = {"place": PARTITIONED, "hash_version": member.hash_version}
    return FanoutPlan(tick, (member_plan(member.table_id, member.spec, **how, **folders),))  # type: ignore[arg-type]


def without(partition: int, offset: int) -> Spoil:
    return lambda records: records.filter(pa.array([at != (partition, offset) for at in _places(records)]))


def twice(partition: int, offset: int) -> Spoil:
    return lambda records: pa.concat_tables(
        [records, records.filter(pa.array([at == (partition, offset) for at in _places(records)]))]
    )


def changed(partition: int, offset: int, value: Any) -> Spoil:
    """Bytes, or of a row its columns."""

    def spoil(records: pa.Table) -> pa.Table:
        name = ROW if ROW in records.schema.names else "value"
        old, number = records.column(name), records.schema.get_field_index(name)
        new = [
            value if at == (partition, offset) else v for at, v in zip(_places(records), old.to_pylist(), strict=True)
        ]
        return records.set_column(number, name, pa.array(new, old.type))

    return spoil


def invented(partition: int, offset: int) -> Spoil:
    """A record that the source does not have, beside its first."""

    def spoil(records: pa.Table) -> pa.Table:
        row = {**records.slice(0, 1).to_pylist()[0], "partition": partition, "offset": offset}
        return pa.concat_tables([records, pa.Table.from_pylist([row], records.schema)])

    return spoil


def _places(records: pa.Table) -> list[tuple[int, int]]:
    return list(zip(records.column("partition").to_pylist(), records.column("offset").to_pylist(), strict=True))
