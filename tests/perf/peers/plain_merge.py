"""A table of current rows without Spark: one process, a consumer, one parse per record, delta-rs' merge per batch."""

from __future__ import annotations

import sys

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

from tests.perf.peers.plain import AT_ONCE, as_table
from tests.perf.peers.task import COLUMNS, Task


def main(task: Task) -> None:
    consumer = Consumer(
        {"bootstrap.servers": task.bootstrap, "group.id": "plain", "enable.auto.commit": False, "log_level": 0}
    )
    partitions = consumer.list_topics(task.topic).topics[task.topic].partitions
    consumer.assign([TopicPartition(task.topic, partition, 0) for partition in partitions])
    table, left = DeltaTable(task.path(0)), task.records
    while left:
        wanted = min(task.batch, left)
        last: dict[bytes, bytes | None] = {}
        read = 0
        while read < wanted:
            for message in consumer.consume(min(AT_ONCE, wanted - read), 1.0):
                if message.error():
                    raise SystemExit(str(message.error()))
                last[message.key()] = message.value()
                read += 1
        left -= wanted
        merge(table, last)
    consumer.close()


def merge(table: DeltaTable, last: dict[bytes, bytes | None]) -> None:
    kept = {key: value for key, value in last.items() if value is not None}
    gone = [key.decode() for key in last.keys() - kept.keys()]
    rows = as_table(list(kept.values()))
    keys = pa.array([*(key.decode() for key in kept), *gone])
    nothing = pa.table({each.name: pa.nulls(len(gone), each.type) for each in rows.schema}, rows.schema)
    changes = pa.concat_tables([rows, nothing]).append_column("key", keys)
    changes = changes.append_column("gone", pa.array([False] * len(kept) + [True] * len(gone)))
    columns = {name: f"s.{name}" for name, _ in COLUMNS} | {"key": "s.key"}
    (
        table.merge(changes, "t.key = s.key", source_alias="s", target_alias="t")
        .when_matched_delete("s.gone")
        .when_matched_update(columns)
        .when_not_matched_insert(columns, "NOT s.gone")
        .execute()
    )


if __name__ == "__main__":
    main(Task.from_json(sys.argv[1]))
