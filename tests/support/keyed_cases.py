"""Streams for tables with keys: drawn from few keys and values, so that every key is met often and in every state.

By a seed for long ones, by hypothesis for short ones that shrink.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.keyed_oracle import Case, Record, Shape, Tick

PLAIN = Shape()
"""FORMAT JSON (n bigint, name text) INCLUDE KEY ENVELOPE UPSERT"""
SHAPES = {
    "text key": PLAIN,
    "inline": Shape(inline="error"),
    "composite": Shape(key_format="json", key_columns=(("a", "bigint"), ("b", "text")), include=()),
    "composite inline": Shape(
        key_format="json",
        key_columns=(("b", "text"), ("flag", "boolean")),
        include=(("offset", "at"), ("timestamp", "when")),
        inline="why",
    ),
    "bytes": Shape(format="bytes", columns=(), include=(("partition", "p"), ("key", "id"))),
    "text": Shape(format="text", columns=(), include=(("key", "key"), ("timestamp", "ts")), inline="error"),
    "json whole": Shape(format="json", columns=(), key_format="text", include=(("key", "k"),)),
    "json key": Shape(format="text", columns=(), key_format="json", include=(("key", "k"), ("offset", "o"))),
    "bytes key": Shape(columns=(("n", "integer"), ("x", "double")), key_format="bytes"),
}

_TEXT_KEYS = (b"a", b"b", b"c", b"", "ü".encode(), b"A", b" a")
_BAD_KEYS = (None, b"\xff", b"a\xc3")
_JSON_KEYS = (
    b'{"a": 1, "b": "x", "flag": true}', b'{"a": 1, "b": "y", "flag": true}', b'{"a": 2, "b": "x", "flag": false}',
    b'{"flag": true, "b": "x", "a": 1, "more": [1]}', b'{"a": -9223372036854775808, "b": "", "flag": false}',
)  # fmt: skip
_BAD_JSON_KEYS = (
    None, b"", b" ", b"{", b"[1]", b"\xff", b"{}", b'{"a": null, "b": null, "flag": null}', b'{"a": 1, "flag": true}',
    b'{"a": "1", "b": "x", "flag": true}', b'{"a": null, "b": 7, "flag": 1}', b'{"a": 1, "b": "x", "flag": true} 1',
)  # fmt: skip
_VALUES = (
    b'{"n": 1, "name": "one", "x": 1.5}', b'{"n": 2, "name": "two"}', b'{"n": 1, "name": "one", "x": 1.5}', b"{}",
    b'{"n": null, "name": null, "x": null}', b'{"n": -7, "name": "", "extra": {"n": 1}}', b'{"name": "\\u00fc", "n": 0}',
)  # fmt: skip
_BAD_VALUES = (
    b"", b" ", b"not json", b'{"n": 1', b"\xfe\xff", b"[1, 2]", b'{"n": "1"}', b'{"n": 1.5}', b'{"name": 5}',
    b'{"n": 99999999999999999999}', b'{"n": true, "name": []}', b'{"n": NaN}', b'{"n": 1} {"n": 2}', b'{"x": "1"}',
)  # fmt: skip
_TIMES = (0, -1, 1_700_000_000_000, 253_402_300_799_999, 253_402_300_800_000)


class Step(NamedTuple):
    """A record, and how many offsets without one come before it."""

    partition: int
    key: bytes | None
    value: bytes | None
    gap: int = 0
    time: int = 0


def keys_of(shape: Shape) -> tuple[tuple[bytes, ...], tuple[bytes | None, ...]]:
    """Good ones and bad ones."""
    if (shape.key_format or "") == "json":
        return _JSON_KEYS, _BAD_JSON_KEYS
    if (shape.key_format or shape.format) == "bytes":
        return (*_TEXT_KEYS, b"\xff", b"\x00"), (None,)
    return _TEXT_KEYS, _BAD_KEYS


def assemble(shape: Shape, ticks: list[list[Step]], *, first_tick: int = 1) -> Case:
    """Offsets are given in the order of the steps, from 0 on in each partition."""
    ends: dict[int, int] = {}
    records, made = [], []
    for number, steps in enumerate(ticks, start=first_tick):
        begin = dict(ends)
        for step in steps:
            offset = ends.get(step.partition, 0) + step.gap
            ends[step.partition] = offset + 1
            records.append(Record(step.partition, offset, step.key, step.value, step.time))
        made.append(Tick(number, {lane: (begin.get(lane, 0), end) for lane, end in ends.items()}))
    return Case(shape, tuple(made), tuple(records))


def drawn(
    seed: int,
    shape: Shape = PLAIN,
    *,
    ticks: int = 12,
    most: int = 30,
    partitions: int = 3,
    bad: float = 0.1,
    deletes: float = 0.25,
) -> Case:
    """A long stream. Some ticks are empty, and a key may be in any partition."""
    dice = Random(seed)
    good, wrong = keys_of(shape)

    def step() -> Step:
        key = dice.choice(wrong) if dice.random() < bad else dice.choice(good)
        value = dice.choice(_BAD_VALUES) if dice.random() < bad else dice.choice(_VALUES)
        gap = dice.choice((0, 0, 0, 1, 3))
        time = dice.choice(_TIMES)
        return Step(dice.randrange(partitions), key, None if dice.random() < deletes else value, gap, time)

    return assemble(
        shape, [[step() for _ in range(dice.choice((0, 1, dice.randrange(most + 1))))] for _ in range(ticks)]
    )


def cases(shapes: Iterable[Shape] = SHAPES.values()) -> st.SearchStrategy[Case]:
    """Short streams, which shrink to few ticks and records."""
    return st.sampled_from(list(shapes)).flatmap(_cases)


def _cases(shape: Shape) -> st.SearchStrategy[Case]:
    good, wrong = keys_of(shape)
    keys = st.sampled_from(good[:3]) | st.sampled_from(good) | st.sampled_from(wrong)
    values = st.sampled_from(_VALUES) | st.none() | st.sampled_from(_BAD_VALUES)
    steps = st.builds(Step, st.integers(0, 2), keys, values, st.integers(0, 2), st.sampled_from(_TIMES))
    return st.lists(st.lists(steps, max_size=6), min_size=1, max_size=5).map(lambda ticks: assemble(shape, ticks))


def groups(case: Case, cuts: st.DataObject | Random) -> list[tuple[Tick, ...]]:
    """The ticks of a case in groups of neighbours, as a backfill may take them."""
    found: list[list[Tick]] = []
    for tick in case.ticks:
        new = cuts.random() < 0.4 if isinstance(cuts, Random) else cuts.draw(st.booleans())
        if new or not found:
            found.append([])
        found[-1].append(tick)
    return [tuple(group) for group in found]
