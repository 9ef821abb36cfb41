"""Sources whose tables have real rows, written by the fan-out's own writer and commits: no broker, no Spark, no app."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.log.members import CatalogMember
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Outcome, Tick, Written
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import FileWritten, NewFiles, commit_tick
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, errors_schema
from airflow_provider_mzshare.storage.fanout.results import merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.writing.member_plans import member_plan

TOPIC_ID = "topic-id-1"


class Filled:
    """A catalog and a warehouse. Each source has one partition; a tick is the records it is fed.

    :param clock: proposes the ticks' times, in milliseconds.
    """

    def __init__(self, catalog: Catalog, folder: Path, *, clock: Callable[[], int] = wall_ms) -> None:
        self.catalog, self._clock = catalog, clock
        self.root = str(folder / "warehouse")
        Path(self.root).mkdir(parents=True, exist_ok=True)

    def source(self, name: str = "s") -> ItemId:
        spec = KafkaSourceSpec(connection="broker", topic=name)
        with self.catalog.write() as session:
            return items.create_source(
                session, name=("public", name), spec=spec, incarnation=TOPIC_ID, start=Position()
            )

    def table(
        self, source_id: ItemId, name: str, columns: str, *, schema: str = "public", include: Sequence[Include] = ()
    ) -> ItemId:
        """:param columns: ``id bigint, note text``."""
        pairs = [one.rsplit(" ", 1) for one in columns.split(", ")]
        specs = tuple(ColumnSpec(name=n, type=t) for n, t in pairs)
        spec = TableSpec(reference="t", format="json", columns=specs, include=tuple(include))
        with self.catalog.write() as session:
            return items.create_table(session, name=(schema, name), source_id=source_id, spec=spec)

    def feed(
        self,
        source_id: ItemId,
        records: Sequence[Mapping[str, Any]],
        *,
        stall: Sequence[ItemId] = (),
        timestamps: Sequence[int] = (),
    ) -> Tick:
        """One committed tick; the tables of ``stall`` leave by it.

        :param timestamps: of the records, in microseconds since 1970.
        """
        store = CatalogTickStore(self.catalog, source_id, clock=self._clock)
        holder = store.claim(JobId("ingest-1"))
        lower = store.load().upper
        upper = Position({"0": lower[0] + len(records)})
        tick = store.mint(holder, lower=lower, upper=upper, incarnation=TOPIC_ID)
        outcomes: dict[ItemId, Outcome] = {
            member.table_id: Left("full") if member.table_id in stall else self.write(member, tick, records, timestamps)
            for member in store.members()
        }
        store.commit(holder, tick.number, outcomes, {})
        return tick

    def write(
        self,
        member: CatalogMember,
        tick: Tick,
        records: Sequence[Mapping[str, Any]],
        timestamps: Sequence[int] = (),
    ) -> Done:
        """Write and commit a tick of these records to one table's collections."""
        rows = [
            {"key": None, "value": json.dumps(r).encode(), "partition": 0, "offset": tick.lower[0] + n, "timestamp": at}
            for n, (r, at) in enumerate(zip(records, timestamps or [0] * len(records), strict=True))
        ]
        batch = pa.RecordBatch.from_pylist(rows, INPUT_SCHEMA)
        data, errors = (collection_uri(self.root, name) for name in (member.data, member.errors))
        plan = member_plan(
            member.table_id,
            member.spec,
            place=PARTITIONED,
            hash_version=member.hash_version,
            data_path=data,
            errors_path=errors,
        )
        for name, schema in ((member.data, plan.schema), (member.errors, errors_schema())):
            create_collection(self.root, name, schema)
        answers = write_partition(iter([batch]), FanoutPlan(tick.number, (plan,)).to_json())
        result = merge_results(row for one in answers for row in one.to_pylist()).get(member.table_id)
        written = []
        for role, name in (("errors", member.errors), ("data", member.data)):
            files = result.files[role] if result else []
            version = self._commit(name, tick, [FileWritten(f.path, f.size, f.stats, time.time()) for f in files])
            hashed = f"{result.hash(role) if result else 0:032x}"
            written.append(Written(name, version, sum(f.rows for f in files), hashed, tick.number, tick.mz_timestamp))
        return Done(tuple(written), rows=written[1].rows, errors=written[0].rows)

    def _commit(self, name: CollectionId, tick: Tick, files: Sequence[FileWritten]) -> int:
        result = commit_tick(
            Collection.open(self.root, name),
            mz_timestamp=tick.mz_timestamp,
            content=NewFiles(files),
            metadata={"mz_tick": str(tick.number)},
            knows=lambda _: True,
            force=True,
        )
        assert result.version is not None
        return result.version
