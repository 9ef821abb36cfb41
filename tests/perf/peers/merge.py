"""A table of current rows, as Spark's users keep one: one streaming query, and each batch is merged by its keys.

The table is there already. With the word ``vectors`` it is set to have deletion vectors.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, from_json, max

from tests.perf.peers.spark import SCHEMA, checkpoint, session
from tests.perf.peers.task import COLUMNS, Task

MERGE = """
MERGE INTO delta.`{path}` AS t USING changes AS s ON t.key = s.key
WHEN MATCHED AND s.value IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET {updates}
WHEN NOT MATCHED AND s.value IS NOT NULL THEN INSERT (key, {names}) VALUES (s.key, {values})
"""


def statement(path: str) -> str:
    names = [name for name, _ in COLUMNS]
    updates = ", ".join(f"t.{name} = s.record.{name}" for name in names)
    values = ", ".join(f"s.record.{name}" for name in names)
    return MERGE.format(path=path, updates=updates, names=", ".join(names), values=values)


def main(task: Task, *, vectors: bool) -> None:
    text = statement(task.path(0))

    def write(batch: DataFrame, _: int) -> None:
        """Of each key, which is always in the same partition, the last record."""
        last = batch.groupBy("key").agg(max("record").alias("last")).select("key", col("last.value").alias("value"))
        changes = last.withColumn("record", from_json(col("value"), SCHEMA))
        changes.createOrReplaceTempView("changes")
        batch.sparkSession.sql(text)

    with session(task) as spark:
        if vectors:
            spark.sql(f"ALTER TABLE delta.`{task.path(0)}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        options = {
            "kafka.bootstrap.servers": task.bootstrap,
            "subscribe": task.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(task.batch),
        }
        stream = spark.readStream.format("kafka").options(**options).load()
        records = stream.selectExpr(
            "CAST(key AS STRING) AS key", "struct(offset, CAST(value AS STRING) AS value) AS record"
        )
        query = records.writeStream.foreachBatch(write).trigger(availableNow=True)
        query.option("checkpointLocation", checkpoint(task, "merge")).start().awaitTermination()


if __name__ == "__main__":
    main(Task.from_json(sys.argv[1]), vectors="vectors" in sys.argv[2:])
