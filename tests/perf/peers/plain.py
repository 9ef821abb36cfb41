"""Plain Python: one process, a consumer, one parse per record, a Delta write per table and batch.

Records become structs of msgspec, which are cheaper than its dicts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import msgspec
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from deltalake import write_deltalake

from tests.perf.peers.task import COLUMNS, Task

KINDS = {"bigint": int, "text": str, "double": float, "timestamptz": str}
TYPES = {"bigint": pa.int64(), "text": pa.string(), "double": pa.float64(), "timestamptz": pa.timestamp("us", "UTC")}
RECORD = msgspec.defstruct("Record", [(name, KINDS[kind]) for name, kind in COLUMNS], gc=False)
AT_ONCE = 10_000
"""Messages that the consumer gives in one call."""


def batches(task: Task) -> Iterator[list[bytes]]:
    consumer = Consumer(
        {"bootstrap.servers": task.bootstrap, "group.id": "plain", "enable.auto.commit": False, "log_level": 0}
    )
    partitions = consumer.list_topics(task.topic).topics[task.topic].partitions
    consumer.assign([TopicPartition(task.topic, partition, 0) for partition in partitions])
    left = task.records
    while left:
        wanted = min(task.batch, left)
        values: list[bytes] = []
        while len(values) < wanted:
            for message in consumer.consume(min(AT_ONCE, wanted - len(values)), 1.0):
                if message.error():
                    raise SystemExit(str(message.error()))
                values.append(message.value())
        left -= wanted
        yield values
    consumer.close()


def as_table(values: list[bytes]) -> pa.Table:
    """Column by column; the times are read by Arrow, all at once."""
    records = list(map(msgspec.json.Decoder(RECORD).decode, values))
    columns = {}
    for name, kind in COLUMNS:
        found = pa.array(list(map(attrgetter(name), records)), pa.string() if kind == "timestamptz" else TYPES[kind])
        columns[name] = found.cast(TYPES[kind])
    return pa.table(columns)


def main(task: Task) -> None:
    for number in range(task.tables):
        Path(task.path(number)).mkdir(parents=True)
    for values in batches(task):
        table = as_table(values)
        for number, names in enumerate(task.names):
            write_deltalake(task.path(number), table.select(names), mode="append")


if __name__ == "__main__":
    main(Task.from_json(sys.argv[1]))
