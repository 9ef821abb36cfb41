"""Parts of a snapshot of a Postgres, and how an executor reads one: through ADBC, as texts in Arrow's columns.

Travels to Spark's executors. A part is read in a transaction of its own, which imports the snapshot, reads, and then
looks whether the table still has the file that it had before the snapshot: if not, what it read is none of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors.postgres.decoding import snapshot_rows
from airflow_provider_mzshare.errors import SnapshotLost

_ITEM_BITS, _LEAF_BITS = 16, 48
_CTID = np.dtype([("block", ">u4"), ("item", ">u2")])


@dataclass(frozen=True)
class Leaf:
    """A table that has rows itself: the relation, or a partition of it.

    :param filenode: of its file before the snapshot was taken.
    :param rows: as the server estimates; below 0 if it does not know.
    :param number: among the leaves of its relation.
    """

    oid: int
    schema: str
    name: str
    filenode: int
    rows: float = -1.0
    number: int = 0


@dataclass(frozen=True)
class Part:
    """The rows of some blocks of a leaf.

    :param relation: the oid of the table that the rows are of. :param snapshot: the exported name.
    :param columns: with the function that writes each one's values. :param condition: on rows; may be empty.
    :param end: the block after the last; None for all that come.
    """

    relation: int
    snapshot: str
    leaf: Leaf
    columns: tuple[tuple[str, str], ...]
    condition: str
    first: int
    end: int | None

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Part:
        plain = json.loads(text)
        columns = tuple((name, function) for name, function in plain.pop("columns"))
        return cls(leaf=Leaf(**plain.pop("leaf")), columns=columns, **plain)

    @property
    def query(self) -> str:
        values = "".join(f", pg_catalog.textin({function}({_quoted(name)}))" for name, function in self.columns)
        bounds = [f"ctid >= '({self.first},0)'"] + ([f"ctid < '({self.end},0)'"] if self.end is not None else [])
        where = " AND ".join([*bounds, *([f"({self.condition})"] if self.condition else [])])
        return f"SELECT ctid{values} FROM ONLY {_quoted(self.leaf.schema)}.{_quoted(self.leaf.name)} WHERE {where}"


def block_ranges(blocks: int, most: int) -> Sequence[tuple[int, int | None]]:
    """``[first, end)``, none longer than ``most``. The last has no end: all rows are in exactly one of them."""
    firsts = range(0, max(blocks, 1), most)
    return [(first, first + most if first + most < blocks else None) for first in firsts]


@dataclass(frozen=True, repr=False)
class RangeReader:
    """Called with the text of a part. :param values: of the connection, by libpq's names."""

    values: Mapping[str, str]

    def __call__(self, text: str) -> Iterator[pa.RecordBatch]:
        import adbc_driver_manager
        from adbc_driver_postgresql import dbapi

        part = Part.from_text(text)
        try:
            with (
                dbapi.connect(_uri(self.values), autocommit=True) as connection,
                closing(connection.cursor()) as cursor,
            ):
                yield from _read(cursor, part)
        except adbc_driver_manager.Error as error:
            raise SnapshotLost(self._told(error)) from None

    def _told(self, error: Exception) -> str:
        text = " ".join(str(error).split())
        password = self.values.get("password")
        return text.replace(password, "***") if password else text


def _read(cursor: Any, part: Part) -> Iterator[pa.RecordBatch]:
    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    cursor.execute(f"SET TRANSACTION SNAPSHOT '{part.snapshot}'")
    cursor.execute(part.query)
    names = [name for name, _ in part.columns]
    for batch in cursor.fetch_record_batch():
        if batch.num_rows:
            index = ctid_numbers(batch.column(0), part.leaf.number)
            yield snapshot_rows(part.relation, pa.array(index), dict(zip(names, batch.columns[1:], strict=True)))
    # The file is another one if it was rewritten before or while this read it: it cannot come back.
    cursor.execute(f"SELECT coalesce(pg_relation_filenode({part.leaf.oid}::oid), 0)::bigint")
    (filenode,) = cursor.fetchone()
    if filenode != part.leaf.filenode:
        raise SnapshotLost(f"{part.leaf.schema}.{part.leaf.name} was truncated or rewritten after it was taken")
    cursor.execute("ROLLBACK")


def ctid_numbers(ctids: pa.Array, leaf: int) -> npt.NDArray[np.int64]:
    """Where rows lie, as numbers that are different for all rows of a relation.

    :param ctids: six bytes each, as Postgres sends them.
    """
    given = ctids.storage if isinstance(ctids, pa.ExtensionArray) else ctids
    bytes_of = given.cast(pa.binary(_CTID.itemsize)).buffers()[1]
    at = np.frombuffer(bytes_of, _CTID, count=len(given), offset=given.offset * _CTID.itemsize)
    numbers: npt.NDArray[np.int64] = (at["block"].astype(np.int64) << _ITEM_BITS | at["item"]) + (leaf << _LEAF_BITS)
    return numbers


def _uri(values: Mapping[str, str]) -> str:
    return f"postgresql://?{urlencode(values, quote_via=quote)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
