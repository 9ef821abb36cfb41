"""Where the row of each key is, as one process knows it of one version; it moves by the rules, entry by entry."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from airflow_provider_mzshare.core.ticklog.key_index import Move, Seen, index_move
from airflow_provider_mzshare.core.ticklog.log_upkeep import log_part
from tests.support.simulation.delta import Entry
from tests.support.simulation.keyed import KEY, Row
from tests.support.simulation.mutants import Mutant
from tests.support.simulation.steps import NoIndex, Unreadable
from tests.support.simulation.vector_delta import VectorDelta
from tests.support.simulation.vectors import Files, LiveFile, Place, Rewritten, VectorChange

Listed = tuple[frozenset[int], frozenset[int]]
"""The versions with an entry, and those with a checkpoint."""


def list_log(delta: VectorDelta, chance: random.Random) -> Generator[Any, None, Listed]:
    """Not at one moment: each name is looked at before or after somebody else comes between."""
    chosen = delta.storage.seen_late
    late = chance.getrandbits(64) if chosen is None else chosen

    def seen(half: int) -> Listed:
        entries = frozenset(v for v in delta.log if late >> (2 * v % 64) & 1 == half)
        return entries, frozenset(v for v in delta.checkpoints if late >> ((2 * v + 1) % 64) & 1 == half)

    before = seen(0)
    yield
    after = seen(1)
    return before[0] | after[0], before[1] | after[1]


class Index:
    """It also has what a process knows of the files, and the mirror of their rows, which needs no file for a row."""

    def __init__(self, delta: VectorDelta, mutant: Mutant, chance: random.Random, counts: Counter[str]) -> None:
        self._delta, self._mutant, self._chance, self._counts = delta, mutant, chance, counts
        self.version: int | None = None
        self.places: dict[int, Place] = {}
        self.files: Files = {}
        self.mirror = 0
        """Grows when it is made anew."""
        self._held: tuple[int, Rewritten] | None = None
        """A compaction that was put, and where, until it is known what became of it."""

    def bring_to(self, version: int, *, rebuilds: bool = True) -> Generator[Any, None, None]:
        """:param rebuilds: else NoIndex where it would have to be made anew, from files."""
        if self.version is not None and self._mutant is Mutant.INDEX_OF_ANY_VERSION:
            self.version = version
        while self.version != version:
            if not (yield from self._moved(version)):
                if not rebuilds and self._delta.live[version]:
                    raise NoIndex
                self._rebuild(version)

    def _moved(self, target: int) -> Generator[Any, None, bool]:
        """One version further; False if it has to be made anew."""
        if self.version is None:
            return False
        if self._mutant is Mutant.INDEX_JUMPS and self.version < target:
            self.version = target - 1
        at = self.version + 1
        early: Listed | None = None
        if self._mutant is Mutant.LISTED_BEFORE_READ:
            early = yield from list_log(self._delta, self._chance)
            yield
        entry = self._delta.log.get(at)
        listed = early or (yield from list_log(self._delta, self._chance))
        part = log_part(*listed)
        if self._mutant in (Mutant.HOLES_ARE_FOLLOWED, Mutant.HOLES_ARE_LOG):
            part = listed[0]
        mappings = {}
        if self._held is not None and self._held[1].mirror == self.mirror:
            mappings = {self._held[0]: self._held[1].entry_id}
        seen = None if entry is None else Seen(at, self._entry_id(entry, mappings.get(at)), is_whole=True)
        move = index_move(self.version, seen, loaded=target, log=part, plans={}, mappings=mappings)
        if entry is None or move is Move.REBUILD:
            return False
        after = self._delta.after(self.files, entry.change)
        if not self._delta.are_there({path: after[path] for path in entry.change.added}):
            return False  # it is not whole
        if move is Move.MAPPED and self._held is not None:
            self._counts["index mapped"] += 1
            self._remap(at, self._held[1], after)
            return True
        if self._mutant is Mutant.COMPACTIONS_SKIPPED and not entry.time:
            self.version, self.files = at, after
            return True
        return self._follow(at, after)

    def _entry_id(self, entry: Entry, held: str | None) -> str | None:
        if self._mutant is Mutant.MAPPED_BY_VERSION and held:
            return held
        found: str | None = entry.change.entry_id
        return found

    def _follow(self, version: int, after: Files) -> bool:
        before = self.files
        new = {path: file for path, file in after.items() if path not in before}
        changed = {path: file for path, file in after.items() if path in before and file.vector != before[path].vector}
        if any(before[path].gone - file.gone for path, file in changed.items()):
            return False  # rows that were taken away are back
        if self._mutant is not Mutant.VECTORS_NOT_FOLLOWED:
            self._take_away({path: file.gone for path, file in changed.items()})
        self.places = {key: place for key, place in self.places.items() if place[0] in after}
        if self._mutant is not Mutant.NEW_FILES_NOT_FOLLOWED:
            self._enter(new)
        self.version, self.files = version, after
        self._counts["index followed"] += 1
        return True

    def _rebuild(self, version: int) -> None:
        self.version = None
        if not self._delta.is_loadable(version) or not self._delta.are_there(self._delta.live[version]):
            raise Unreadable
        self.mirror += 1
        self.places, self._held = {}, None
        self.files = self._delta.live[version]
        self._enter(self.files)
        self.version = version
        self._counts["index rebuilt"] += 1

    def _enter(self, files: Mapping[str, LiveFile]) -> None:
        for path, file in files.items():
            for number, row in enumerate(self._delta.contents[path]):
                if number not in file.gone:
                    self.places[row.key] = path, number

    def _take_away(self, vectors: Mapping[str, frozenset[int]]) -> None:
        self.places = {k: (path, n) for k, (path, n) in self.places.items() if n not in vectors.get(path, ())}

    # ── what commits ask and tell ─────────────────────────────────────────────────────────────────────────────────────

    def find(self, events: Iterable[int]) -> dict[int, tuple[Row, Place]]:
        """The rows of the keys of these events, and where they are."""
        keys = {KEY[event] for event in events}
        found = {key: self.places[key] for key in sorted(keys) if key in self.places}
        return {key: (self._delta.contents[path][number], (path, number)) for key, (path, number) in found.items()}

    def committed(self, on: int, change: VectorChange) -> None:
        """An own commit is known to be there."""
        if self.version != on:
            return
        after = self._delta.after(self.files, change)
        self._take_away({path: after[path].gone for path in change.removed})
        self._enter({path: file for path, file in after.items() if path not in self.files})
        self.version, self.files = on + 1, after

    def hold(self, done: Rewritten, version: int) -> None:
        self._held = version, done

    def rewritten(self, on: int, done: Rewritten, change: VectorChange) -> None:
        """A compaction of our own is known to be there."""
        self._remap(on + 1, done, self._delta.after(self.files, change))

    def _remap(self, version: int, done: Rewritten, after: Files) -> None:
        self._held = None
        self.places = {key: done.mapping.get(place, place) for key, place in self.places.items()}
        self.version, self.files = version, after
