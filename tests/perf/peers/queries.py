"""A streaming query for each table, all in one session: every one reads and parses the topic for itself."""

from __future__ import annotations

import sys

from tests.perf.peers.spark import checkpoint, parsed, session
from tests.perf.peers.task import Task


def main(task: Task) -> None:
    with session(task) as spark:
        started = [
            parsed(spark, task)
            .select(*names)
            .writeStream.format("delta")
            .trigger(availableNow=True)
            .option("checkpointLocation", checkpoint(task, str(number)))
            .start(task.path(number))
            for number, names in enumerate(task.names)
        ]
        for query in started:
            query.awaitTermination()


if __name__ == "__main__":
    main(Task.from_json(sys.argv[1]))
