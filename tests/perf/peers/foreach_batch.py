"""One streaming query; each batch is kept and written to every table, in eight threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame

from tests.perf.peers.spark import checkpoint, parsed, session
from tests.perf.peers.task import Task

THREADS = 8


def main(task: Task) -> None:
    def append(batch: DataFrame, number: int) -> None:
        columns = batch.select(*task.names[number])
        columns.write.format("delta").mode("append").save(task.path(number))

    def write(batch: DataFrame, _: int) -> None:
        if task.tables == 1:  # nobody would keep what is used once
            append(batch, 0)
            return
        batch.persist()
        try:
            list(pool.map(lambda number: append(batch, number), range(task.tables)))
        finally:
            batch.unpersist()

    with session(task) as spark, ThreadPoolExecutor(THREADS) as pool:
        stream = parsed(spark, task).writeStream.foreachBatch(write).trigger(availableNow=True)
        stream.option("checkpointLocation", checkpoint(task, "all")).start().awaitTermination()


if __name__ == "__main__":
    main(Task.from_json(sys.argv[1]))
