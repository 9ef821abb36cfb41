"""An upstream with several Debeziums that read it, all of them real, and marks at which they have said everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.debezium.engine import Debezium
from tests.support.debezium.upstream import RELATIONS, Writer, create_all
from tests.support.kafka import consume, create_topic, positions
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until

PLAIN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
WRAPPED = {"tombstones.on.delete": "false", "provide.transaction.metadata": "true"}


@dataclass(frozen=True)
class Mark:
    """:param rows: of each relation. :param ends: of each topic, what its partitions had by then."""

    rows: Mapping[str, list[tuple[Any, ...]]]
    ends: Mapping[str, Mapping[int, int]]


class Scene:
    """:param connectors: the settings of each, by the prefix of its topics."""

    def __init__(
        self,
        folder: Path,
        postgres: Postgres,
        kafka: EmbeddedKafka,
        connectors: Mapping[str, Mapping[str, str]],
        *,
        seed: int = 1,
    ) -> None:
        self._kafka = kafka
        self._database = postgres.create_database()
        self.connection = postgres.connect(self._database)
        create_all(self.connection)
        self.writer = Writer(self.connection, seed)
        self.debeziums: dict[str, Debezium] = {}
        self._marks, self._signals = count(1), count(1)
        for number, (prefix, settings) in enumerate(connectors.items(), start=1):
            tables = [f"public.{each}" for each in ("odd", *(r.name for r in RELATIONS if r.name != "odd"), "marks")]
            for relation in RELATIONS:
                create_topic(kafka, relation.partitions, name=topic_of(prefix, relation.name))
            signals = f"public.signals{number}"
            for name in (f"{prefix}.public.marks", f"{prefix}.{signals}", f"{prefix}.transaction"):
                create_topic(kafka, name=name)
            basics = {
                "table.include.list": ",".join([*tables, signals]),
                "signal.data.collection": signals,
                "decimal.handling.mode": "double",
                "incremental.snapshot.chunk.size": "5",
            }
            more = {**basics, **settings}
            self.debeziums[prefix] = Debezium(folder / prefix, postgres, self._database, kafka, prefix, more)

    def close(self) -> None:
        for debezium in self.debeziums.values():
            debezium.kill()
        self.connection.close()

    def start(self, **more: Any) -> None:
        for debezium in self.debeziums.values():
            debezium.start(**more)

    def hold_and_kill(self, after: int) -> None:
        """All of them, when each has sent so many records."""
        self.start(hold_after=after)
        self.wait_held()
        self.kill()

    def wait_held(self) -> None:
        for debezium in self.debeziums.values():
            debezium.wait_held()

    def kill(self) -> None:
        for debezium in self.debeziums.values():
            debezium.kill()

    def snapshot_again(self, *relations: str) -> None:
        """While changes go on: what is read then is said as ``op r``, in between."""
        listed = ", ".join(f'"public.{name}"' for name in relations)
        data = f'{{"type": "incremental", "data-collections": [{listed}]}}'
        for number in range(1, len(self.debeziums) + 1):
            statement = f"INSERT INTO signals{number} VALUES (%s, 'execute-snapshot', %s)"
            self.connection.execute(statement.encode(), [f"again{next(self._signals)}", data])

    def snapshots_said(self, prefix: str, relation: str) -> int:
        """How many records say what such a snapshot has read."""
        found = consume(self._kafka, topic_of(prefix, relation))
        return sum(b'"snapshot":"incremental"' in (message.value() or b"") for message in found)

    def mark(self, timeout: float = 120) -> Mark:
        """Wait until all that was written is in the topics."""
        rows = {relation.name: relation.rows(self.connection) for relation in RELATIONS}
        # A batch is acknowledged as a whole: by the second mark's, all of the first one's is there.
        for _ in range(2):
            number = next(self._marks)
            self.connection.execute("INSERT INTO marks VALUES (%s)", [number])
            for prefix in self.debeziums:
                self._wait_marked(prefix, number, timeout)
        ends = {
            topic: positions(self._kafka, topic)
            for prefix in self.debeziums
            for topic in (topic_of(prefix, relation.name) for relation in RELATIONS)
        }
        return Mark(rows, ends)

    def _wait_marked(self, prefix: str, number: int, timeout: float) -> None:
        topic = topic_of(prefix, "marks")

        def said() -> bool:
            self.debeziums[prefix].check_alive()
            return len({message.key() for message in consume(self._kafka, topic)}) >= number

        wait_until(said, timeout, f"mark {number} in {topic}")


def topic_of(prefix: str, relation: str) -> str:
    return f"{prefix}.public.{relation}"
