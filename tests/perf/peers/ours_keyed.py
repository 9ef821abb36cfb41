"""The product with one table that is kept by its keys, and that has rows already when the app begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, SourceSettings, TableSpec
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from tests.perf.peers.task import COLUMNS, Task
from tests.support.kafka import Record, produce
from tests.support.keyed_load import KEY, fill, member_plan
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

SETTINGS = {"trigger_interval_ms": 50}


@dataclass(frozen=True)
class KeyedTable(Table):
    """:param history: for how many seconds the table can be read back; as long as usual by default."""

    vectors: bool = True
    history: int | None = None

    def spec(self, topic: str) -> TableSpec:
        return TableSpec(
            reference=topic,
            format="json",
            columns=tuple(ColumnSpec(name=name, type=kind) for name, kind in COLUMNS),
            include=(Include(what="key", name=KEY),),
            envelope="upsert",
            deletion_vectors=self.vectors,
            **({} if self.history is None else {"retain_history_seconds": self.history}),
        )


def filled(stack: Stack, name: str, keys: int, *, vectors: bool) -> CollectionId:
    """The collection of a table that no app has opened yet, with so many rows."""
    with stack.catalog.read() as session:
        collection_id = CollectionId(stack.collections(session, name)["data"])
    root = str(stack.warehouse)
    create_collection(root, collection_id, member_plan().schema, keys=(KEY,), vectors=vectors)
    fill(Collection.open(root, collection_id), keys)
    return collection_id


class OursKeyed:
    """:param keys: how many rows the table has when the app begins."""

    def __init__(
        self, task: Task, kafka: EmbeddedKafka, keys: int, *, vectors: bool, history: int | None = None
    ) -> None:
        folder = Path(task.folder, "home")
        folder.mkdir(parents=True)
        self.stack = Stack(folder, kafka, open_catalog(f"sqlite:///{folder / 'catalog.db'}"))
        settings = SourceSettings(max_records_per_tick=task.batch, **SETTINGS)
        table = KeyedTable("t0", vectors=vectors, history=history)
        self._source = self.stack.create("source", task.topic, [table], settings)
        self.name = filled(self.stack, "t0", keys, vectors=vectors)
        self._topic, self._kafka = task.topic, kafka
        self.look_for_end()

    def look_for_end(self) -> None:
        """All that is in the topic by now is to be in the table when it is done."""
        with self.stack.upstream(self._topic) as upstream:
            self._end = upstream.end_offsets()

    def wait_ready(self) -> None:
        """Until its index is there, if it has one. A table whose index is late leaves the ticks for a while, and its
        records come in a few commits. The record that is sent takes away a key that is not there.
        """
        produce(self._kafka, self._topic, [Record(None, key=b"nobody")])
        self.look_for_end()
        wait_until(self.is_done, 300, "a table with its index")

    @property
    def path(self) -> Path:
        return self.stack.warehouse / self.name

    def is_done(self) -> bool:
        assert self.stack.launcher.status(self._handle) == "alive", self.stack.log(self._handle)
        state = self.stack.store(self._source).load()
        (table,) = state.tables.values()
        return bool(table.status == "live" and table.position >= self._end and not state.pending)

    def commit_seconds(self) -> list[float]:
        """Of each tick with records, what came after the pass."""
        found = self.stack.tick_stats(self._source)
        return [each["commit_ms"] / 1000 for each in found if "commit_ms" in each]

    def __enter__(self) -> OursKeyed:
        """The app starts."""
        self._handle = self.stack.launch(self._source)
        return self

    def __exit__(self, *exc: object) -> None:
        self.stack.launcher.request_stop(self._handle)
        wait_until(lambda: self.stack.launcher.status(self._handle) == "gone", 60, "the app's end")
        self.stack.catalog.close()

    @property
    def pid(self) -> int:
        return self._handle.pid
