"""Changes of Postgres: what was not sent is the row's, also where the row has got another key in the same change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.envelopes.base import CLEARS, DELETES, KEPT, RECORD
from airflow_provider_mzshare.envelopes.postgres import POSTGRES
from airflow_provider_mzshare.envelopes.registry import envelope_words
from airflow_provider_mzshare.formats.registry import sql_words

ROW = arrow_schema(
    (
        ("id", "bigint"),
        ("n", "bigint"),
        ("note", "text"),
        ("_mz_tick", "bigint"),
        ("_mz_lsn", "bigint"),
        ("_mz_index", "bigint"),
    )
)


class Event(NamedTuple):
    """:param note: None: it was not sent. :param old: the key until now, where that was another one."""

    id: int
    n: int
    note: str | None = None
    old: int | None = None


class Gone(NamedTuple):
    id: int


def events_of(changes: Sequence[Event | Gone], tick: int = 1) -> pa.Table:
    rows = []
    for number, change in enumerate(changes):
        at = {"_mz_tick": tick, "_mz_lsn": 10 * tick, "_mz_index": number}
        if isinstance(change, Gone):
            rows.append({"id": change.id, **at, DELETES: True, CLEARS: False})
            continue
        kept = json.dumps(["note"]) if change.note is None else None
        rows.append(
            {"id": change.id, "n": change.n, "note": change.note, **at, DELETES: False, CLEARS: False, KEPT: kept}
        )
        if change.old is not None:
            rows.append({"id": change.old, **at, DELETES: True, CLEARS: False})
    marks = [(DELETES, pa.bool_()), (CLEARS, pa.bool_()), (KEPT, pa.string())]
    records = [(name, pa.binary()) for name in RECORD.values()]
    return pa.Table.from_pylist(rows, schema=pa.schema([*ROW, *marks, *records]))


def settled(
    changes: Sequence[Event | Gone], held: Mapping[int, str], groups: int
) -> tuple[dict[int, tuple[int, str]], list[str]]:
    rows = [{"id": id, "n": 0, "note": note, "_mz_tick": 0, "_mz_lsn": 0, "_mz_index": id} for id, note in held.items()]
    table, refused = pa.Table.from_pylist(rows, schema=ROW), []
    size = -(-len(changes) // groups)
    for start in range(0, len(changes), size):
        found = POSTGRES.settle(events_of(changes[start : start + size], start + 1), table, ["id"])
        mine = set(events_of(changes[start : start + size]).column("id").to_pylist())
        others = table.filter(pa.array([each not in mine for each in table.column("id").to_pylist()], pa.bool_()))
        table = pa.concat_tables([others, found.after.select(ROW.names)])
        refused += found.refused.values()
    return {row["id"]: (row["n"], row["note"]) for row in table.to_pylist()}, refused


NOT_SENT = 'field "note": not sent, because it has not changed, and there is no row to take it from'


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize(
    ("changes", "after", "refused"),
    [
        ([Event(1, 5)], {1: (5, "a"), 2: (0, "b")}, []),
        ([Event(3, 5, None, 1)], {2: (0, "b"), 3: (5, "a")}, []),
        ([Event(3, 5, None, 1), Event(4, 6, None, 3), Event(4, 7)], {2: (0, "b"), 4: (7, "a")}, []),
        ([Event(9, 1, None, 1), Event(1, 2, None, 2), Event(2, 3, None, 9)], {1: (2, "b"), 2: (3, "a")}, []),
        ([Event(1, 5), Gone(2)], {1: (5, "a")}, []),
        ([Gone(1), Event(3, 5, None, 1), Event(2, 6)], {2: (6, "b")}, [NOT_SENT]),
        ([Event(3, 5, "c", 1), Event(3, 6)], {2: (0, "b"), 3: (6, "c")}, []),
    ],
)
def test_what_was_not_sent_is_taken_from_the_row_of_the_key_before(
    changes: Sequence[Event | Gone], after: dict[int, tuple[int, str]], refused: list[str], groups: int
) -> None:
    assert settled(changes, {1: "a", 2: "b"}, min(groups, len(changes))) == (after, refused)


def test_no_statement_says_it() -> None:
    assert POSTGRES.lacks(format="postgres", include=()) is None
    assert "POSTGRES" not in envelope_words()
    assert "POSTGRES" not in sql_words()
