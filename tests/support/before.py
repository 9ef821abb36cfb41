"""A home that the version before has left, and what that version answered from it (``tests/fixtures/before``)."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import select

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_table
from airflow_provider_mzshare.control.upstreams import open_records
from airflow_provider_mzshare.core.positions import Position
from tests.support.driven import Records

FOLDER = Path(__file__).parents[1] / "fixtures" / "before"
ELSEWHERE = "/elsewhere"
"""Where the home was, as far as what it holds still says so."""
TABLES = ("orders", "lines", "late", "bids", "users")

Row = list[Any]


def known() -> dict[str, Any]:
    """``answers`` of its tables, and ``triggers`` as Airflow stores them."""
    found: dict[str, Any] = json.loads((FOLDER / "known.json").read_text())
    return found


def unpack(folder: Path) -> Path:
    """The home, as it was left."""
    with tarfile.open(FOLDER / "home.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def open_catalog(home: Path) -> Catalog:
    return Catalog(f"sqlite:///{home / 'catalog.db'}")


def answers(home: Path) -> dict[str, dict[str, Any]]:
    """By table: the ticks that it can be read at, its newest rows and its errors, each with its tick.

    An older answer is the same without the rows of later ticks; here it is looked at whether that is so.
    """
    return {name: _answer(home, name) for name in TABLES}


def _answer(home: Path, name: str) -> dict[str, Any]:
    with open_catalog(home) as catalog, catalog.read() as session:
        table = items.find_table(session, ("public", name))
        query = select(TickRow.number).where(
            TickRow.source_id == table.source_id, TickRow.mz_timestamp.between(table.since, table.upper - 1)
        )
        ticks = sorted(session.scalars(query))
    newest = {role: read(home, name, errors=role == "errors") for role in ("rows", "errors")}
    for tick in ticks:
        for role, rows in newest.items():
            upto = [row for row in rows if row[-3] <= tick]
            assert read(home, name, tick=tick, errors=role == "errors") == upto, f"{role} of {name} as of tick {tick}"
    return {"ticks": ticks, **newest}


def read(home: Path, name: str, *, tick: int | None = None, errors: bool = False) -> list[Row]:
    """Rows as JSON has them, in the order of their places; tick, partition and offset come last."""
    query = Query(errors=errors, with_system_columns=True, ordered=True)
    with open_catalog(home) as catalog:
        rows = read_table(catalog, str(home / "warehouse"), name, query, tick=tick)
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    told: list[Row] = json.loads(json.dumps([list(row) for row in values], default=_plain))
    return sorted(told, key=lambda row: row[-3:])


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def generated(source: items.SourceItem) -> Records:
    """The records of a load generator, as any reader gives them."""

    def read(lower: Position, upper: Position) -> Iterator[pa.RecordBatch]:
        with open_records(FixedConnections({}), source.spec, source.incarnation) as reader:
            for partition in upper:
                yield from reader.read(int(partition), lower[partition], upper[partition])

    return read
