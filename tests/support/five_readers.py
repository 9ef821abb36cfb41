"""The five readers that people have, over Delta tables of files that were written already."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.transaction import AddAction

from tests.support.random_passes import Pair

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "file_number"
"""A column that says which file a row comes from: a partition of Delta's. Polars takes its value from the path."""
OFFSET = "_mz_offset"
PLACE = (FILE, "_mz_partition", OFFSET)
"""What identifies a row."""


@dataclass
class Folder:
    """A Delta table of files whose columns of one name have one type. A file without a column has NULLs there."""

    path: Path
    pairs: list[Pair] = field(default_factory=list)
    types: dict[str, pa.DataType] = field(default_factory=dict)

    def takes(self, pair: Pair) -> bool:
        return all(self.types.get(each.name, each.type) == each.type for each in pair.schema)

    def add(self, pair: Pair) -> None:
        self.pairs.append(pair)
        self.types |= {each.name: each.type for each in pair.schema}

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.types.items(), (FILE, pa.string())])

    def file(self, number: int) -> Path:
        return self.path / f"{FILE}={number}" / f"{number}.parquet"

    def write(self) -> None:
        """One commit of all files, with the statistics that the pass has told."""
        table = DeltaTable.create(str(self.path), self.schema, partition_by=[FILE])
        actions = []
        for number, pair in enumerate(self.pairs):
            path = self.file(number)
            path.parent.mkdir()
            os.link(pair.spliced, path)
            name, now = str(path.relative_to(self.path)), int(time.time() * 1000)
            told = pair.told
            actions.append(AddAction(name, told["size"], {FILE: str(number)}, now, True, told["stats"]))
        table.create_write_transaction(actions, mode="append", schema=table.schema(), partition_by=[FILE])

    def expected(self) -> pa.Table:
        """What Arrow reads of the files that Arrow has written."""
        parts = []
        for number, pair in enumerate(self.pairs):
            part = pq.read_table(pair.written, partitioning=None)
            parts.append(part.append_column(FILE, pa.array([str(number)] * len(part), pa.string())))
        return pa.concat_tables(parts, promote_options="default").select(self.schema.names)


def folders_of(where: Path, pairs: Iterable[Pair]) -> list[Folder]:
    """As few as the types of their columns allow: Spark needs a second for each."""
    made: list[Folder] = []
    for pair in pairs:
        folder = next((each for each in made if each.takes(pair)), None)
        if folder is None:
            folder = Folder(where / str(len(made)))
            made.append(folder)
        folder.add(pair)
    for folder in made:
        folder.write()
    return made


Bounds = tuple[int, int]
Read = Callable[[Folder], pa.Table]
ReadPart = Callable[[Folder, Bounds], pa.Table]
"""The places of the rows whose offset is at least the first and below the second."""


@dataclass(frozen=True)
class Reader:
    all: Read
    between: ReadPart


def readers(spark: SparkSession | None) -> Mapping[str, Reader]:
    """``delta-rs`` is its log and Arrow's reader, as its ``to_pyarrow_dataset`` puts them together; ``DataFusion`` is
    the one inside delta-rs, which reads Parquet by itself. DuckDB gets the files: its extension for Delta is not in its
    package.
    """
    found = {
        "delta-rs": Reader(lambda f: _dataset(f).to_table(), _arrow_between),
        "DataFusion": Reader(lambda f: _datafusion(f, "SELECT * FROM t"), _datafusion_between),
        "Polars": Reader(lambda f: polars.scan_delta(str(f.path)).collect().to_arrow(), _polars_between),
        "DuckDB": Reader(lambda f: _duckdb(f, f"SELECT * FROM {_duckdb_files(f)}"), _duckdb_between),
    }
    if spark is not None:
        found["Spark with Delta"] = Reader(
            lambda f: spark.read.format("delta").load(str(f.path)).toArrow(),
            lambda f, bounds: (
                spark.read.format("delta").load(str(f.path)).where(_sql(bounds)).select(*_quoted("`")).toArrow()
            ),
        )
    return found


def _sql(bounds: Bounds) -> str:
    return f"{OFFSET} >= {bounds[0]} AND {OFFSET} < {bounds[1]}"


def _quoted(mark: str) -> list[str]:
    return [f"{mark}{name}{mark}" for name in PLACE]


def _dataset(folder: Folder) -> pyarrow.dataset.Dataset:
    return DeltaTable(str(folder.path)).to_pyarrow_dataset()


def _arrow_between(folder: Folder, bounds: Bounds) -> pa.Table:
    offset = pyarrow.dataset.field(OFFSET)
    return _dataset(folder).to_table(list(PLACE), filter=(offset >= bounds[0]) & (offset < bounds[1]))


def _datafusion(folder: Folder, query: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(str(folder.path))).execute(query).read_all())


def _datafusion_between(folder: Folder, bounds: Bounds) -> pa.Table:
    return _datafusion(folder, f"SELECT {', '.join(_quoted(chr(34)))} FROM t WHERE {_sql(bounds)}")


def _polars_between(folder: Folder, bounds: Bounds) -> pa.Table:
    offset = polars.col(OFFSET)
    chosen = polars.scan_delta(str(folder.path)).filter(offset >= bounds[0], offset < bounds[1])
    return chosen.select(PLACE).collect().to_arrow()


def _duckdb_files(folder: Folder) -> str:
    files = [str(folder.file(number)) for number in range(len(folder.pairs))]
    return f"read_parquet({files!r}, union_by_name = true, filename = '{FILE}', hive_partitioning = false)"


def _duckdb(folder: Folder, query: str) -> pa.Table:
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(query).to_arrow_table()
    names = [Path(path).stem for path in found.column(FILE).to_pylist()]
    return found.set_column(found.schema.get_field_index(FILE), FILE, pa.array(names, pa.string()))


def _duckdb_between(folder: Folder, bounds: Bounds) -> pa.Table:
    return _duckdb(folder, f"SELECT {', '.join(_quoted(chr(34)))} FROM {_duckdb_files(folder)} WHERE {_sql(bounds)}")


# ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def difference(found: pa.Table, expected: pa.Table) -> str | None:
    """What differs, whatever the order of rows; readers may have larger types for the same values. To the bit: a NaN
    is a NaN, and minus zero is not zero.
    """
    if set(found.column_names) != set(expected.column_names):
        return f"columns {sorted(set(found.column_names) ^ set(expected.column_names))}"
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    by_place = [(name, "ascending") for name in PLACE]
    found = found.select(expected.column_names).cast(expected.schema).sort_by(by_place)
    expected = expected.sort_by(by_place)
    for name in expected.column_names:
        columns = [_bits(each.column(name).combine_chunks()) for each in (found, expected)]
        if not columns[0].equals(columns[1]):
            return f"column {name!r}: {_first_difference(*columns)}"
    return None


def _bits(values: pa.Array) -> pa.Array:
    whole = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(values.type)
    return values.view(whole) if whole else values


def _first_difference(found: pa.Array, expected: pa.Array) -> str:
    pairs = zip(found.to_pylist(), expected.to_pylist(), strict=True)
    return next((f"{one!r}, not {other!r}" for one, other in pairs if one != other), "other NULLs")
