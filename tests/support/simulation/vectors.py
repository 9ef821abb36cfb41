"""Rows that are taken away by deletion vectors: what a plan and a compaction name, and what becomes of the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.simulation.keyed import HASH_MASK, Row, fold, hashed

Place = tuple[str, int]
"""A file, and a row of it."""
Vectors = Mapping[str, frozenset[int]]
"""What a file of vectors has: by data file, the rows that are taken away."""
Image = tuple[int, Row | None, Row | None]
"""Of a change file: a key, its row before, its row after."""
NO_ROWS: frozenset[int] = frozenset()


class LiveFile(NamedTuple):
    """:param vector: the file of vectors that has its vector. :param gone: the rows that it takes away."""

    vector: str | None = None
    gone: frozenset[int] = NO_ROWS


Files = Mapping[str, LiveFile]


class VectorChange(NamedTuple):
    """What a log entry names.

    :param entry_id: a text that no other entry has; None for those of others than us.
    :param removed: data files, those with a new vector included.
    :param added: data files, with the file of vectors that each has from here on.
    :param changes: a file of the change feed.
    :param objects: what is written before the entry, in this order: the name, and what is in it.
    :param rows: new minus old, as ``hash`` is.
    """

    entry_id: str | None
    removed: frozenset[str]
    added: Mapping[str, str | None]
    changes: str | None
    objects: Mapping[str, Any]
    rows: int = 0
    hash: int = 0

    def names(self) -> set[str]:
        """All files that have to be there."""
        found = {*self.added, *(vector for vector in self.added.values() if vector)}
        return found | {self.changes} if self.changes else found


CREATED = VectorChange(None, frozenset(), {}, None, {})


class Names:
    """Names that nothing else has."""

    def __init__(self) -> None:
        self._last = 0

    def new(self, kind: str) -> str:
        self._last += 1
        return f"{kind}{self._last}"


# ── a tick ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan(
    kind: str, before: Mapping[int, tuple[Row, Place]], files: Files, events: Iterable[int], names: Names
) -> VectorChange:
    """New rows in a new file, vectors on the old ones, and both in a file of changes; nothing if no row changes.

    :param before: by key, the row that it has, and where.
    :param files: their vectors are what the new ones grow from.
    """
    changed = fold(kind, {key: row for key, (row, _) in before.items()}, events)
    entry_id = names.new("e")
    if not changed:
        return VectorChange(entry_id, frozenset(), {}, None, {})
    new = tuple(row for row in changed.values() if row is not None)
    old = [before[key][0] for key in changed if key in before]
    vectors: dict[str, frozenset[int]] = {}
    for path, number in (before[key][1] for key in changed if key in before):
        vectors[path] = vectors.get(path, files.get(path, LiveFile()).gone) | {number}
    images = tuple((key, before[key][0] if key in before else None, row) for key, row in changed.items())
    objects: dict[str, Any] = {}
    added: dict[str, str | None] = {}
    if new:
        objects[path := names.new("f")] = new
        added[path] = None
    if vectors:
        objects[vector := names.new("v")] = vectors
        added |= dict.fromkeys(vectors, vector)
    objects[changes := names.new("c")] = images
    more, hash_ = len(new) - len(old), (hashed(new) - hashed(old)) & HASH_MASK
    return VectorChange(entry_id, frozenset(vectors), added, changes, objects, more, hash_)


# ── a compaction ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rewritten:
    """Files that are written beside the ticks, and not named yet.

    :param inputs: the rows that were left out of each.
    :param outputs: nothing if no row is left.
    :param mapping: where each row that was read is now.
    :param mirror: the mirror of rows that has those of the outputs.
    :param written: the hour.
    """

    entry_id: str
    inputs: Mapping[str, frozenset[int]]
    outputs: Mapping[str, tuple[Row, ...]]
    mapping: Mapping[Place, Place]
    mirror: int
    written: int

    def carried(self, gone: Vectors) -> dict[str, frozenset[int]]:
        """By output, the rows that were taken away since the inputs were read."""
        found: dict[str, frozenset[int]] = {}
        for path, rows in gone.items():
            for row in rows:
                output, number = self.mapping[path, row]
                found[output] = found.get(output, NO_ROWS) | {number}
        return found

    def change(self, carried: Vectors, names: Names) -> VectorChange:
        """What is put: the outputs were written long ago, the vectors that are carried over were not."""
        added: dict[str, str | None] = dict.fromkeys(self.outputs)
        objects: dict[str, Any] = {}
        if carried:
            objects[vector := names.new("v")] = carried
            added |= dict.fromkeys(carried, vector)
        return VectorChange(self.entry_id, frozenset(self.inputs), added, None, objects)


def rewrite(
    inputs: Iterable[str], files: Files, rows_of: Mapping[str, tuple[Row, ...]], names: Names, *, mirror: int, hour: int
) -> Rewritten:
    output = names.new("f")
    left_out = {path: files[path].gone for path in sorted(inputs)}
    mapping: dict[Place, Place] = {}
    rows: list[Row] = []
    for path, gone in left_out.items():
        for number, row in enumerate(rows_of[path]):
            if number not in gone:
                mapping[path, number] = output, len(rows)
                rows.append(row)
    outputs = {output: tuple(rows)} if rows else {}
    return Rewritten(names.new("e"), left_out, outputs, mapping, mirror, hour)
