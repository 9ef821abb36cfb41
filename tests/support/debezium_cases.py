"""Streams for tables with ENVELOPE DEBEZIUM, of few keys and values, so that every key is met in every state."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.support.debezium_oracle import CODED, PLACEHOLDER, DebeziumCase, DebeziumShape, RemovesAll, change_of
from tests.support.keyed_cases import Step, assemble
from tests.support.keyed_oracle import Columns

_VALUE: Columns = (("n", "bigint"), ("name", "text"), ("big", "text"), ("tags", "jsonb"), ("x", "double"))
NAMED = DebeziumShape(
    columns=(("name", "text"), ("a", "bigint"), ("b", "text"), ("big", "text")), primary_key=("b", "a")
)
SHAPES = {
    "key": DebeziumShape(columns=_VALUE, key_format="json", key_columns=(("id", "bigint"),)),
    "composite": DebeziumShape(
        columns=(("name", "text"), ("big", "text"), ("price", "numeric(10,2)"), ("seen", "timestamptz")),
        key_format="json",
        key_columns=(("a", "bigint"), ("b", "text")),
        include=(("offset", "at"),),
    ),
    "named": NAMED,
}

_KEYS = (
    {"id": 1, "a": 1, "b": "x"},
    {"id": 2, "a": 1, "b": "y"},
    {"id": 3, "a": 2, "b": "x"},
    {"id": 4, "a": -1, "b": ""},
)
_BAD_KEYS = (
    None,
    b"",
    b"{",
    b"[1]",
    b"{}",
    b'{"id": "1", "a": "1", "b": 1}',
    b'{"id": null, "a": null, "b": null}',
    b"\xff",
)
_VALUES: dict[str, tuple[Any, ...]] = {
    "n": (1, 2, None),
    "name": ("one", "größer", None, ""),
    "big": ("large" * 100, "other" * 90, None),
    "tags": (["a", 1], {"deep": [None]}, None, "text"),
    "x": (1.5, 2, None),
    "price": (1.25, 3, -0.5, None),
    "seen": ("2024-02-29T01:02:03.000004Z", "2024-02-29T01:02:03Z", None),
}
_NOT_SENT = {"big": (PLACEHOLDER, CODED), "tags": ([PLACEHOLDER], list(PLACEHOLDER.encode()), PLACEHOLDER)}
_WRONG = {"n": "one", "name": 1, "big": ["?"], "x": "1", "price": 1.001, "seen": "yesterday"}
_BAD_VALUES = (
    b"", b" ", b"not json", b'{"op": "c"', b"\xfe\xff", b"[1]", b"7", b"{}", b'{"op": "c"}',
    b'{"op": "m", "after": {}}',
    b'{"op": null, "after": {}}', b'{"op": "u", "after": [1]}', b'{"op": "u", "after": null, "before": {"id": 1}}',
    b'{"op": 1, "after": {"id": 1, "a": 1, "b": "x"}}', b'{"schema": {}, "payload": 7}', b'{"op": "d", "before": 1}',
    b'{"schema": {}, "payload": {"op": "c"}}', b'{"op": "c", "after": {"n": NaN}}',
)  # fmt: skip
_OPS = ("c", "r", "u", "u", "u")


def drawn(
    seed: int,
    shape: DebeziumShape,
    *,
    ticks: int = 12,
    most: int = 30,
    partitions: int = 3,
    bad: float = 0.1,
    clears: float = 0.0,
) -> DebeziumCase:
    """A long stream: changes, deletions with and without a row, tombstones, and snapshots again and again.

    Some ticks are empty, and a key may be in any partition.
    """
    making = _Making(Random(seed), shape, partitions, bad, clears)
    made = assemble(shape, [making.tick(most) for _ in range(ticks)])
    return DebeziumCase(shape, made.ticks, made.records)


def truncates(case: DebeziumCase) -> bool:
    return any(isinstance(change_of(case.shape, record, 1), RemovesAll) for record in case.records)


class _Making:
    def __init__(self, dice: Random, shape: DebeziumShape, partitions: int, bad: float, clears: float) -> None:
        self._dice, self._shape, self._partitions, self._bad, self._clears = dice, shape, partitions, bad, clears
        self._key_names = [name for name, _ in shape.key_columns]

    def tick(self, most: int) -> list[Step]:
        dice = self._dice
        if dice.random() < 0.1:
            return [step for key in _KEYS for step in [self._step(key, self._told("r", self._row(key)))]]
        return [
            step
            for _ in range(dice.choice((0, 1, dice.randrange(most + 1))))
            for step in self._change(dice.choice(_KEYS))
        ]

    def _change(self, key: dict[str, Any]) -> list[Step]:
        dice = self._dice
        if dice.random() < self._clears:
            return [Step(dice.randrange(self._partitions), None, self._told("t"))]
        if dice.random() < self._bad:
            return [self._step(key, dice.choice(_BAD_VALUES))]
        if dice.random() < self._bad:
            wrong = dice.choice(list(_WRONG))
            return [self._step(key, self._told("u", {**self._row(key), wrong: _WRONG[wrong]}))]
        if dice.random() < 0.3:
            return self._deletion(key)
        return self._set(key)

    def _set(self, key: dict[str, Any]) -> list[Step]:
        row = self._row(key)
        if self._shape.primary_key and self._dice.random() < 0.3:
            # To another key; all of the row is sent then.
            before = self._row(self._dice.choice(_KEYS))
            return [self._step(key, self._told("u", row, before))]
        for name in [name for name in _NOT_SENT if name in row and self._dice.random() < 0.4]:
            row[name] = self._dice.choice(_NOT_SENT[name])
        op = self._dice.choice(_OPS)
        return [self._step(key, self._told(op, row, self._row(key) if self._dice.random() < 0.2 else None))]

    def _deletion(self, key: dict[str, Any]) -> list[Step]:
        chosen = self._dice.random()
        before = None if chosen < 0.2 else key if chosen < 0.6 else self._row(key)
        deletion = self._step(key, self._told("d", before=before))
        alone = self._dice.random()
        tombstone = deletion._replace(value=None, gap=0)
        return [deletion, tombstone] if alone < 0.4 else [tombstone] if alone < 0.6 else [deletion]

    def _row(self, key: dict[str, Any]) -> dict[str, Any]:
        names = [name for name, _ in self._shape.columns if name in _VALUES]
        row = {name: self._dice.choice(_VALUES[name]) for name in names if self._dice.random() < 0.95}
        return {**key, **row, "more": {"n": 1}}

    def _told(self, op: str, after: Any = None, before: Any = None) -> bytes:
        told = {"before": before, "after": after, "source": {"db": "x"}, "transaction": None, "op": op, "ts_ms": 1}
        return self._written(told)

    def _written(self, told: dict[str, Any]) -> bytes:
        if self._dice.random() < 0.3:
            told = {"schema": {"type": "struct", "fields": []}, "payload": told}
        return json.dumps(told, ensure_ascii=self._dice.random() < 0.5).encode()

    def _step(self, key: dict[str, Any], value: bytes) -> Step:
        written: bytes | None = self._written({name: key[name] for name in self._key_names})
        if self._shape.primary_key:
            own = self._written({name: key[name] for name in self._shape.primary_key})
            written = self._dice.choice((None, b"{", written, own))
        elif self._dice.random() < self._bad:
            written = self._dice.choice(_BAD_KEYS)
        return Step(self._dice.randrange(self._partitions), written, value, self._dice.choice((0, 0, 0, 1, 3)))
