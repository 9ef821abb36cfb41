"""A folder of numbered lines as an upstream, and its readers: a data source of our own, and a plain DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS, Inspection, ReferenceInfo
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.offset_log import logged_end
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import ReferenceMissing, UpstreamChanged
from numbered_lines import lines
from numbered_lines.kind import LinesSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LinesConnector:
    def __init__(self, spec: LinesSpec, connection: Connection | None, incarnation: str | None) -> None:
        self._spec = spec

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> LinesUpstream:
        return LinesUpstream(self._spec.folder)

    def reader(self, spark: SparkSession) -> LinesReader:
        return LinesReader(spark, self._spec)

    def records(self) -> LinesRecords:
        return LinesRecords(self._spec.folder)


@dataclass(frozen=True)
class LinesInfo:
    incarnation: str
    partitions: tuple[int, ...]


class LinesUpstream:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def inspect(self, start: Start) -> Inspection:
        return Inspection(self.describe(), self.resolve_start(start))

    def describe(self) -> LinesInfo:
        try:
            incarnation = Path(self._folder, "id").read_text().strip()
        except OSError:
            raise ReferenceMissing(f"folder {self._folder!r} has no lines", hint="make it first") from None
        return LinesInfo(incarnation, tuple(lines.files(self._folder)))

    def references(self) -> tuple[ReferenceInfo, ...]:
        self.describe()
        return (ReferenceInfo(None, Path(self._folder).name),)

    def check_readable(self) -> None:
        self.describe()

    def check_identity(self, incarnation: str) -> None:
        try:
            found = self.describe().incarnation
        except ReferenceMissing as missing:
            raise UpstreamChanged("folder_missing", f"{missing.message} any more") from None
        if found != incarnation:
            raise UpstreamChanged(
                "folder_recreated", f"folder {self._folder!r} is {found}, this source read {incarnation}"
            )

    def check_history(self, lower: Position) -> None:
        for partition, begin in self.begin_offsets().entries:
            if begin > lower[partition]:
                raise UpstreamChanged("history_gone", f"file {partition} begins at {begin}, not at {lower[partition]}")

    def compaction(self) -> None:
        """Lines stay as they are."""

    def begin_offsets(self) -> Position:
        return Position({p: begin for p, (begin, _) in lines.ranges(self._folder).items()})

    def end_offsets(self) -> Position:
        return Position({p: end for p, (_, end) in lines.ranges(self._folder).items()})

    def resolve_start(self, start: Start) -> Position:
        return self.begin_offsets()

    def record_sizes(self, lower: Position, upper: Position) -> Mapping[str, float]:
        return {}

    def close(self) -> None:
        """Nothing is held open."""

    def __enter__(self) -> LinesUpstream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class LinesReader:
    place = PARTITIONED

    def __init__(self, spark: SparkSession, spec: LinesSpec) -> None:
        from numbered_lines.datasource import NAME, LinesSource

        self._spark, self._spec, self._format = spark, spec, NAME
        spark.dataSource.register(LinesSource)

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        most = max(1, min(self._spec.batch, max_records // max(1, len(partitions))))
        options = {"folder": self._spec.folder, "start": start.to_json(), "most": str(most)}
        return self._spark.readStream.format(self._format).options(**options).load()

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        """Spark's own reader of texts: any DataFrame of these columns will do."""
        found = [self._of_file(int(p), lower[p], upper[p]) for p in upper if lower[p] < upper[p]]
        return reduce(lambda one, other: one.unionAll(other), found) if found else None

    def _of_file(self, partition: int, lower: int, upper: int) -> DataFrame:
        cut = "instr(value, ' ')"
        written = self._spark.read.text(str(lines.files(self._spec.folder)[partition]))
        split = written.selectExpr(
            f"CAST(substring(value, {cut} + 1, length(value)) AS BINARY) AS value",
            f"CAST(substring(value, 1, {cut} - 1) AS BIGINT) AS offset",
        )
        return split.where(f"offset >= {lower} AND offset < {upper}").selectExpr(
            "CAST(NULL AS BINARY) AS key", "value", f"CAST({partition} AS INT) AS partition", "offset",
            "timestamp_seconds(offset) AS timestamp",
        )  # fmt: skip

    def parts(self, lower: Position, upper: Position, tasks: int) -> None:
        """Spark reads them."""

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        return None

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        return None

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        lower = Position(logged_end(checkpoint, batch_id - 1)) if batch_id else start
        return lower, Position(logged_end(checkpoint, batch_id))

    def close(self) -> None:
        """Nothing is held open."""


class LinesRecords:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, partition: int, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        return lines.records(self._folder, partition, lower, upper)

    def excuse(self) -> str | None:
        return None

    def __enter__(self) -> LinesRecords:
        return self

    def __exit__(self, *exc: Any) -> None:
        """Nothing is held open."""
