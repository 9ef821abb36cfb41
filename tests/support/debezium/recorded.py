"""Streams that a real Debezium once made, and what the upstream held: files of ``tests/fixtures/debezium``."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.debezium.upstream import BIG, RELATIONS, Relation
from tests.support.debezium_oracle import DebeziumCase, DebeziumShape, contents, upstream_contents
from tests.support.keyed_oracle import Record, Tick

MOVED = 3
"""The mark after which a row had got another key (see ``tests/fixtures/debezium/make.py``)."""
FILE = Path(__file__).parents[2] / "fixtures" / "debezium" / "streams.json.xz"


@dataclass(frozen=True)
class Stream:
    """The records of one topic.

    :param ends: of each mark, what its partitions had by then.
    :param rows: of each mark, what the upstream had, as ``Relation.rows`` gives it.
    """

    connector: str
    relation: Relation
    records: tuple[Record, ...]
    ends: tuple[Mapping[int, int], ...]
    rows: tuple[Sequence[Sequence[str | None]], ...]

    @property
    def name(self) -> str:
        return f"{self.connector} {self.relation.name}"

    @property
    def case(self) -> DebeziumCase:
        """A tick for each mark."""
        return self.cut(1)

    def cut(self, parts: int) -> DebeziumCase:
        """So many ticks for each mark, the last of which ends there."""
        ends = [dict.fromkeys(self.ends[0], 0)]
        for mark in self.ends:
            last = ends[-1]
            ends += [
                {lane: begin + (mark[lane] - begin) * part // parts for lane, begin in last.items()}
                for part in range(1, parts + 1)
            ]
        ticks = [
            Tick(number, {lane: (before[lane], end) for lane, end in after.items()})
            for number, (before, after) in enumerate(pairwise(ends), start=1)
        ]
        return DebeziumCase(shape_of(self.relation), tuple(ticks), self.records)


def shape_of(relation: Relation) -> DebeziumShape:
    """By the record's key, or by the columns of a relation whose records have none."""
    if not relation.full:
        return DebeziumShape(columns=relation.columns, key_format="json", key_columns=relation.key)
    return DebeziumShape(columns=relation.listed, primary_key=tuple(name for name, _ in relation.key))


def check_upstream(stream: Stream) -> None:
    """What its records say is what the upstream had, at every mark."""
    made = stream.case
    states = made.states()
    assert made.stalled is None
    for number, rows in enumerate(stream.rows, start=1):
        wanted, found = upstream_contents(made.shape, rows), contents(states[number])
        unsaid = stream.relation.name == "odd"
        assert len(states[number].errors) == (2 if unsaid and number >= MOVED else 0)
        if unsaid:
            # What Debezium never said: that this row is gone, and the large value of the one that got another key.
            assert found.pop((1,)) == ("odd", "odd" * BIG, 1)
        if unsaid and number == MOVED:
            assert wanted.pop((20,)) == ("moved", "odd" * BIG, 20)
        assert found == wanted, f"{stream.name} at mark {number}"


@cache
def streams() -> tuple[Stream, ...]:
    relations = {relation.name: relation for relation in RELATIONS}
    return tuple(_stream(relations, told) for told in json.loads(lzma.decompress(FILE.read_bytes())))


def _stream(relations: Mapping[str, Relation], told: dict[str, Any]) -> Stream:
    records = [
        Record(lane, offset, _bytes(key), _bytes(value), time) for lane, offset, time, key, value in told["records"]
    ]
    ends = [{int(lane): end for lane, end in mark.items()} for mark in told["ends"]]
    return Stream(told["connector"], relations[told["relation"]], tuple(records), tuple(ends), tuple(told["rows"]))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def save(found: Sequence[Stream]) -> None:
    told = [
        {
            "connector": stream.connector,
            "relation": stream.relation.name,
            "records": [[r.partition, r.offset, r.timestamp, _text(r.key), _text(r.value)] for r in stream.records],
            "ends": stream.ends,
            "rows": stream.rows,
        }
        for stream in found
    ]
    FILE.write_bytes(lzma.compress(json.dumps(told, ensure_ascii=False).encode(), preset=9 | lzma.PRESET_EXTREME))


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()
