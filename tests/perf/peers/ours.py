"""The product: a source with its tables, and the shared app as a user gets it, until every table has everything."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.perf.peers.task import Task, columns_of
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

LOOK_SECONDS = 0.5


class Ours:
    """What is prepared before the measure, the run itself, and where its tables are."""

    def __init__(self, task: Task, kafka: EmbeddedKafka) -> None:
        folder = Path(task.folder, "home")
        folder.mkdir(parents=True)
        self._stack = Stack(folder, kafka, open_catalog(f"sqlite:///{folder / 'catalog.db'}"))
        usual = SourceSettings(max_records_per_tick=task.batch)
        tables = [Table(f"t{number}", columns_of(number)) for number in range(task.tables)]
        self._names = [table.name for table in tables]
        self._source = self._stack.create("source", task.topic, tables, usual)
        with self._stack.upstream(task.topic) as upstream:
            self._end = upstream.end_offsets()

    def run(self, limit: float) -> None:
        handle = self._stack.launch(self._source)

        def there() -> bool:
            assert self._stack.launcher.status(handle) == "alive", self._stack.log(handle)
            state = self._stack.store(self._source).load()
            return state.upper >= self._end and not state.pending

        wait_until(there, limit, "every table at the topic's end", every=LOOK_SECONDS)
        self._stack.launcher.request_stop(handle)
        wait_until(lambda: self._stack.launcher.status(handle) == "gone", 60, "the app's end")

    def paths(self) -> list[str]:
        with self._stack.catalog.read() as session:
            return [str(self._stack.warehouse / self._stack.collections(session, name)["data"]) for name in self._names]

    def tick_stats(self) -> list[dict[str, float]]:
        return self._stack.tick_stats(self._source)

    def close(self) -> None:
        self._stack.catalog.close()
