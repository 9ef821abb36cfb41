"""Keyed rows: what a record does to its key, how a commit is planned, and what the rows have to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_provider_mzshare.core.ticklog.state import Tick
from tests.support.simulation.topic import MAX_PARTITIONS, WIDTH, prefix

APPEND, UPSERT, SUM, KEEP = "append", "upsert", "sum", "keep"
"""Kinds of tables. A sum adds up the values of its key: it shows a record that was applied twice. Some records of a
table that keeps have no value of their own, but that of the row: without a row they are error rows."""
WITH_VECTORS = {"sum with vectors": SUM, "upsert with vectors": UPSERT}
"""Kinds whose rows are taken away by deletion vectors, not by writing files anew."""

_RECORDS = range(MAX_PARTITIONS * WIDTH)
KEY = [(record * 2654435761 >> 9) % 4 for record in _RECORDS]
"""A key has records in all partitions."""
DELETES = [(record * 40503 >> 5) % 4 == 0 for record in _RECORDS]
KEEPS = [not DELETES[record] and (record * 69069 >> 7) % 3 == 0 for record in _RECORDS]
KEEPING = sum(1 << record for record in _RECORDS if KEEPS[record])
HASH_MASK = (1 << 128) - 1

Files = Mapping[str, tuple["Row", ...]]


class Row(NamedTuple):
    """``place`` is a system column: the record that last set the row."""

    key: int
    value: int
    place: int


class Change(NamedTuple):
    """A commit's files. ``rows`` and ``hash`` are new minus old."""

    removed: frozenset[str]
    added: Files
    rows: int
    hash: int


FENCE = Change(frozenset(), {}, 0, 0)


def is_fence(change: Any) -> bool:
    """Of any collection: it names no file."""
    return not change.removed and not change.added


def ordered(events: int, ticks: Iterable[Tick]) -> Iterator[int]:
    """By tick, then by place."""
    for tick in ticks:
        yield from by_place(events & prefix(tick.upper) & ~prefix(tick.lower))


def by_place(events: int) -> Iterator[int]:
    while events:
        lowest = events & -events
        yield lowest.bit_length() - 1
        events ^= lowest


def hashed(rows: Iterable[Row]) -> int:
    """Of key and visible columns."""
    return sum(hash((row.key, row.value)) for row in rows) & HASH_MASK


# ── what a writer does ────────────────────────────────────────────────────────────────────────────────────────────────


def plan(kind: str, files: Files, events: Iterable[int], new_file: str) -> Change | None:
    """The files with a changed row are written anew, as a merge does. None if no row changes."""
    before = {row.key: row for rows in files.values() for row in rows}
    changed = fold(kind, before, events)
    if not changed:
        return None
    touched = frozenset(name for name, rows in files.items() if any(row.key in changed for row in rows))
    old = [before[key] for key in changed if key in before]
    new = [row for row in changed.values() if row is not None]
    kept = [row for name in touched for row in files[name] if row.key not in changed]
    added = {new_file: (*kept, *new)} if kept or new else {}
    return Change(touched, added, len(new) - len(old), (hashed(new) - hashed(old)) & HASH_MASK)


def fold(kind: str, before: Mapping[int, Row], events: Iterable[int]) -> dict[int, Row | None]:
    """The rows that change, by their keys; None where no row is left."""
    after: dict[int, Row | None] = {}
    for event in events:
        key = KEY[event]
        after[key] = _applied(kind, after[key] if key in after else before.get(key), event)
    return {key: row for key, row in after.items() if row != before.get(key)}


def _applied(kind: str, row: Row | None, event: int) -> Row | None:
    if DELETES[event]:
        return None
    if kind == UPSERT:
        return Row(KEY[event], event % 2, event)
    if kind == KEEP and KEEPS[event]:
        return row and Row(KEY[event], row.value, event)
    if kind == KEEP:
        return Row(KEY[event], event % 5, event)
    return Row(KEY[event], (row.value if row else 0) + (1 << event), event)


def refused(files: Files, events: Iterable[int]) -> int:
    """Events of a table that keeps, on these files, that have no row to keep the value of."""
    there = {row.key for rows in files.values() for row in rows}
    found = 0
    for event in events:
        if DELETES[event]:
            there.discard(KEY[event])
        elif not KEEPS[event]:
            there.add(KEY[event])
        elif KEY[event] not in there:
            found |= 1 << event
    return found


def compaction(files: Files, inputs: Iterable[str], new_file: str) -> Change:
    names = frozenset(inputs)
    return Change(names, {new_file: tuple(row for name in sorted(names) for row in files[name])}, 0, 0)


# ── what has to come out ──────────────────────────────────────────────────────────────────────────────────────────────


def expected_refused(events: int, ticks: Sequence[Tick]) -> int:
    """From all events at once: those that keep, and have had a deletion or nothing since the last own value."""
    found = 0
    last: dict[int, int] = {}
    for event in ordered(events, ticks):
        if not KEEPS[event]:
            last[KEY[event]] = event
        elif KEY[event] not in last or DELETES[last[KEY[event]]]:
            found |= 1 << event
    return found


def expected(kind: str, events: int, ticks: Sequence[Tick]) -> frozenset[Row]:
    """From all events at once, and by no code of the writer's but the order: the last word of each key."""
    if kind == KEEP:
        return _expected_kept(events, ticks)
    since_delete: dict[int, list[int]] = {}
    for event in ordered(events, ticks):
        if DELETES[event]:
            since_delete[KEY[event]] = []
        else:
            since_delete.setdefault(KEY[event], []).append(event)
    return frozenset(
        Row(key, live[-1] % 2 if kind == UPSERT else sum(1 << event for event in live), live[-1])
        for key, live in since_delete.items()
        if live
    )


def _expected_kept(events: int, ticks: Sequence[Tick]) -> frozenset[Row]:
    """The last own value of each key, at the place of the last record that was none of those that are refused."""
    right = events & ~expected_refused(events, ticks)
    own: dict[int, int] = {}
    place: dict[int, int] = {}
    for event in ordered(right, ticks):
        place[KEY[event]] = event
        if not KEEPS[event]:
            own[KEY[event]] = event
    return frozenset(Row(key, event % 5, place[key]) for key, event in own.items() if not DELETES[place[key]])
