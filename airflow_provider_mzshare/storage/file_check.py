"""Writes small files in both ways that the pass has, compares them and reads them: what ``doctor`` asks of Arrow.

Knows what a pass is for, and not how a file is put together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.schema import TYPES
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.splicing import is_exact
from airflow_provider_mzshare.storage.fanout.writer import SPLICED_FROM, write_partition

COMPARED_WITH = "pyarrow>=25.0.1,<=26.0.1"
"""What the tests run with; requirements.lock pins it."""

_ROLES = ("data", "errors")
_GOOD = (
    b'{"boolean":true,"smallint":-1,"integer":70000,"bigint":123456789012,"real":0.5,"double":0.1,"numeric":1.5,'
    b'"text":"\\u00e9","bytea":"AP8=","date":"2024-02-29","timestamp":"2024-01-02T03:04:05.5",'
    b'"timestamptz":"2024-01-02T03:04:05Z","jsonb":{"a":[1.10]}}'
)
_RECORDS = ((_GOOD, b"{}", _GOOD), (b"{", _GOOD))
"""Two pieces: values, NULLs, and a bad record."""


class FilesDiffer(TerminalError):
    """The files that this Arrow writes are not the ones that we expect of it."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"pyarrow {pa.__version__}: {problem}", hint=f"pip install '{COMPARED_WITH}'")


def check_files() -> int:
    """Return how many files were compared, in a folder that is gone afterwards."""
    if not is_exact():
        raise FilesDiffer("files cannot be put together of columns; for many tables the pass takes up to twice as long")
    with tempfile.TemporaryDirectory(prefix="mzshare-probe-") as folder:
        tables = [_table(number) for number in range(SPLICED_FROM)]
        together = dict(_written(Path(folder) / "together", tables))
        apart = dict(found for each in tables for found in _written(Path(folder) / "apart", [each]))
        if together.keys() != apart.keys() or len(together) != len(tables) * len(_ROLES):
            raise FilesDiffer("a pass over many tables gives other files than a pass over each")
        for of, (path, hash) in together.items():
            other, hash_of_other = apart[of]
            if (path.read_bytes(), hash) != (other.read_bytes(), hash_of_other):
                raise FilesDiffer("a file that is put together of columns is not the one that Arrow writes")
            if f"{hash_table(pq.ParquetFile(path).read(use_threads=False)):032x}" != hash:
                raise FilesDiffer("a file does not hold the rows that were written to it")
    return len(together)


def _table(number: int) -> MemberPlan:
    """All types, in another order for each table."""
    columns = [(name, "numeric(38,9)" if name == "numeric" else name) for name in TYPES]
    return MemberPlan(f"u{number}", format_target("json"), (*columns[number:], *columns[:number]), (), "", "")


def _written(folder: Path, tables: Sequence[MemberPlan]) -> Iterator[tuple[tuple[str, str], tuple[Path, str]]]:
    """One pass: each file with the hash that is told of its rows, by table and role."""
    members = []
    for table in tables:
        paths = {role: folder / table.table_id / role for role in _ROLES}
        for path in paths.values():
            path.mkdir(parents=True)
        members.append(replace(table, data_path=str(paths["data"]), errors_path=str(paths["errors"])))
    for batch in write_partition(iter(_batches()), FanoutPlan(1, tuple(members)).to_json()):
        for row in batch.to_pylist():
            if row["error"]:
                raise FilesDiffer(row["error"])
            if row["path"]:
                of = row["table_id"], row["role"]
                yield of, (folder.joinpath(*of, row["path"]), row["hash"])


def _batches() -> Iterator[pa.RecordBatch]:
    first = 0
    for values in _RECORDS:
        offsets = range(first, first := first + len(values))
        records = [{"value": v, "partition": 0, "offset": at} for v, at in zip(values, offsets, strict=True)]
        yield pa.RecordBatch.from_pylist(records, schema=INPUT_SCHEMA)
