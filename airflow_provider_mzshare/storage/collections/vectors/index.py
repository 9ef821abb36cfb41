"""Where the row of each key is: 64-bit hashes of keys, sorted, each with the place of a row in a file.

A hash is not a key: several keys may have the same one, so an answer is a list of candidates, and whoever asks compares
keys. The index reads no files, knows no version, and is scratch: whoever gets an error other than ``IndexDisagrees``
closes it and builds it anew. One thread at a time.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from airflow_provider_mzshare.storage.collections.vectors.memory import Share
from airflow_provider_mzshare.storage.fanout.hashing import Words

GONE = np.uint64(2**64 - 1)
"""No location: of a row that was taken away."""
MAX_FILES = 2**32 - 1
ENTRY_BYTES = 16
"""A hash and a location."""
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(2**32 - 1)
_SMALL_RUN = 16_384
"""Entries. Merging so few costs less than looking into another run at each tick."""
_GROWTH = 8
"""A run is merged into the one below once that is at most so many times larger: few runs, few moves of an entry."""
_PART = 1 << 18
"""Entries that are scanned or merged at once."""
_BUILD_PART = 1 << 20
_BUCKET_SHIFT = np.uint64(56)
_BUCKETS = 256

Places = npt.NDArray[np.intp]


class IndexDisagrees(LookupError):
    """The index does not hold what was to be changed; nothing was changed."""


def locations_of(file_number: int, rows: npt.NDArray[np.integer]) -> Words:
    if not 0 <= file_number < MAX_FILES:
        raise ValueError(f"file number {file_number} is not between 0 and {MAX_FILES - 1}")
    locations: Words = np.uint64(file_number << 32) | rows.astype(np.uint64)
    return locations


def files_of(locations: Words) -> Words:
    files: Words = locations >> _ROW_BITS
    return files


def rows_of(locations: Words) -> npt.NDArray[np.int64]:
    rows: npt.NDArray[np.int64] = (locations & _ROW_MASK).astype(np.int64)
    return rows


@dataclass(eq=False)
class _Run:
    """Sorted by hash. A location is overwritten in place.

    :param live: how many are not gone. :param mapped: the arrays are files, not memory.
    """

    hashes: Words
    locations: Words
    live: int
    mapped: bool

    @property
    def size(self) -> int:
        return len(self.hashes)

    def matches(self, queries: Words) -> tuple[Places, Places]:
        """For sorted queries: the place of a query, and that of an entry with its hash, live or not."""
        first = np.searchsorted(self.hashes, queries)
        hits = np.flatnonzero(self.hashes[np.minimum(first, self.size - 1)] == queries)
        begins, wanted = first[hits], queries[hits]
        again = np.flatnonzero(self.hashes[np.minimum(begins + 1, self.size - 1)] == wanted)
        again = again[begins[again] + 1 < self.size]
        if not again.size:
            return hits, begins
        counts = np.ones(hits.size, np.intp)
        counts[again] = np.searchsorted(self.hashes, wanted[again], "right") - begins[again]
        ends = np.cumsum(counts)
        entries = np.arange(ends[-1]) + np.repeat(begins - ends + counts, counts)
        return np.repeat(hits, counts), entries

    def overwrite(self, entries: Places, locations: Words | np.uint64) -> None:
        """All these entries are live."""
        self.locations[entries] = locations
        self.live -= int(np.count_nonzero(self.locations[entries] == GONE))


def place(folder: Path | None, share: Share | None, size: int) -> Path | None:
    """Where arrays go: to the folder unless it is None, or the index may have ``size`` bytes of memory in all."""
    return None if folder is None or (share is not None and share.takes(size)) else folder


def _new_array(size: int, folder: Path | None) -> Words:
    """In memory, or in a mapped file without a name, which ends with the process however that ends."""
    if folder is None or not size:
        return np.empty(size, np.uint64)
    with tempfile.TemporaryFile(dir=folder, prefix="index-") as file:
        # On a full disk this raises OSError; writing into a mapped hole would kill the process instead.
        os.posix_fallocate(file.fileno(), 0, size * 8)
        return np.frombuffer(mmap.mmap(file.fileno(), size * 8), np.uint64)


class KeyIndex:
    """:param folder: where the arrays are mapped files; None: they are in memory.
    :param share: of the memory. An array is a file where it does not fit, and memory again once it is merged and fits.
    """

    def __init__(self, folder: Path | None = None, share: Share | None = None) -> None:
        self._folder, self._share = folder, share
        self._held: list[_Run] | None = []

    @property
    def _runs(self) -> list[_Run]:
        """Old and large ones first. A closed index must not answer that there is no such key."""
        if self._held is None:
            raise ValueError("the index is closed")
        return self._held

    def __len__(self) -> int:
        return sum(run.live for run in self._runs)

    @property
    def memory_bytes(self) -> int:
        return self._bytes(mapped=False)

    @property
    def disk_bytes(self) -> int:
        return self._bytes(mapped=True)

    def _bytes(self, *, mapped: bool) -> int:
        return sum(ENTRY_BYTES * run.size for run in self._held or () if run.mapped == mapped)

    def close(self) -> None:
        self._held = None
        self._settle()

    def _settle(self) -> None:
        """Runs that were merged into another have given their memory back."""
        if self._share is not None:
            self._share.takes(self.memory_bytes)

    # ── by hash ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, hashes: Words) -> tuple[Places, Words]:
        """All candidates, in no order: the place of a hash among ``hashes``, and a location that is held under it."""
        order = np.argsort(hashes)
        queries = hashes[order]
        places, locations = [np.zeros(0, np.intp)], [np.zeros(0, np.uint64)]
        for run in self._runs:
            hits, entries = run.matches(queries)
            found = run.locations[entries]
            live = found != GONE
            places.append(order[hits[live]])
            locations.append(found[live])
        return np.concatenate(places), np.concatenate(locations)

    def add(self, hashes: Words, locations: Words) -> None:
        """Of rows that are not there yet: nobody checks that."""
        _check_locations(hashes, locations)
        runs = self._runs
        if not hashes.size:
            return
        order = np.argsort(hashes)
        run = self._new_run(hashes.size)
        run.hashes[:], run.locations[:] = hashes[order], locations[order]
        runs.append(run)
        self._tidy()

    def drop(self, hashes: Words, locations: Words) -> None:
        """Rows that were taken away. Raises IndexDisagrees unless each is there under its hash."""
        for run, _, entries in self._exact(hashes, locations):
            run.overwrite(entries, GONE)
        self._tidy()

    def move(self, hashes: Words, old: Words, new: Words) -> None:
        """Keys whose rows are elsewhere now. Raises IndexDisagrees unless each old one is there under its hash."""
        _check_locations(hashes, new)
        for run, places, entries in self._exact(hashes, old):
            run.overwrite(entries, new[places])

    def _exact(self, hashes: Words, locations: Words) -> list[tuple[_Run, Places, Places]]:
        """The places of these pairs and their entries, by run: all of them are known before anything changes."""
        _check_locations(hashes, locations)
        if np.unique(locations).size != locations.size:
            raise IndexDisagrees("a row is to leave its place twice")
        order = np.argsort(hashes)
        queries, wanted = hashes[order], locations[order]
        found = []
        for run in self._runs:
            hits, entries = run.matches(queries)
            same = run.locations[entries] == wanted[hits]
            if same.any():
                found.append((run, order[hits[same]], entries[same]))
        there = sum(places.size for _, places, _ in found)
        if there != hashes.size:
            raise IndexDisagrees(f"of {hashes.size:,} rows that are to leave their places, {there:,} are there")
        return found

    # ── by location: these look at every entry ────────────────────────────────────────────────────────────────────────

    def drop_files(self, file_numbers: Sequence[int]) -> None:
        """All rows of these files; files without rows here may be among them."""
        for run, entries, _ in self._in_files(np.unique(np.array(file_numbers, np.uint64))):
            run.overwrite(entries, GONE)
        self._tidy()

    def drop_rows(self, locations: Words) -> None:
        """Rows of which only the places are known; places without a row, as in a vector that adds up, may be there."""
        if not locations.size:
            return
        ordered = np.unique(locations)
        files = files_of(ordered)
        numbers, firsts = np.unique(files, return_index=True)
        rows = rows_of(ordered)
        sizes = rows[np.append(firsts[1:], rows.size) - 1] + 1
        starts = np.cumsum(sizes) - sizes
        marks = np.zeros(int(sizes.sum()), np.bool_)
        marks[np.repeat(starts, np.diff(np.append(firsts, rows.size))) + rows] = True
        for run, entries, which in self._in_files(numbers):
            rows = rows_of(run.locations[entries])
            near = rows < sizes[which]
            leaves = marks[starts[which[near]] + rows[near]]
            run.overwrite(entries[near][leaves], GONE)
        self._tidy()

    def remap(self, mapping: Mapping[int, Words]) -> None:
        """Rows of these files have moved together.

        :param mapping: for each file, the new location of each of its rows; ``GONE`` for one that left.
        """
        numbers = np.array(sorted(mapping), np.uint64)
        parts = [mapping[int(number)] for number in numbers]
        sizes = np.array([part.size for part in parts], np.int64)
        starts = np.cumsum(sizes) - sizes
        targets = np.concatenate([np.zeros(0, np.uint64), *parts])
        for run, entries, which in self._in_files(numbers):
            rows = rows_of(run.locations[entries])
            if (rows >= sizes[which]).any():
                raise ValueError("the index has rows that the files have not")
            run.overwrite(entries, targets[starts[which] + rows])
        self._tidy()

    def _in_files(self, numbers: Words) -> Iterator[tuple[_Run, Places, npt.NDArray[np.int32]]]:
        """Live entries of these files, part by part: the run, the entry, and which of the sorted numbers it has.

        Files are numbered as they come, so that a table over all numbers in between is small.
        """
        runs = self._runs
        if not numbers.size:
            return
        if numbers[-1] >= MAX_FILES:
            raise ValueError(f"file number {numbers[-1]} is not between 0 and {MAX_FILES - 1}")
        lowest, span = numbers[0], numbers[-1] - numbers[0] + np.uint64(1)
        table = np.full(int(span), -1, np.int32)
        table[(numbers - lowest).astype(np.intp)] = np.arange(numbers.size)
        for run in runs:
            for begin in range(0, run.size, _PART):
                # Below the lowest the difference wraps around and is too large, as are those of entries that are gone.
                above = files_of(run.locations[begin : begin + _PART]) - lowest
                near = np.flatnonzero(above < span)
                which = table[above[near].astype(np.intp)]
                yield run, begin + near[which >= 0], which[which >= 0]

    # ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _new_run(self, size: int) -> _Run:
        folder = place(self._folder, self._share, self.memory_bytes + ENTRY_BYTES * size)
        return _Run(_new_array(size, folder), _new_array(size, folder), size, mapped=folder is not None)

    def _tidy(self) -> None:
        """Merge young runs into older ones, and leave out what is gone where that is most of a run."""
        runs = self._runs
        for number, run in enumerate(runs):
            if run.live < run.size // 2 or not run.live:
                runs[number] = self._merged(run, self._new_run(0))
        runs[:] = [run for run in runs if run.size]
        while len(runs) > 1 and runs[-2].size <= max(_SMALL_RUN, _GROWTH * runs[-1].size):
            runs[-2:] = [self._merged(*runs[-2:])]
        self._settle()

    def _merged(self, old: _Run, young: _Run) -> _Run:
        """The live entries of both, a part of the old one at a time."""
        merged = self._new_run(old.live + young.live)
        done = taken = 0
        for begin in range(0, old.size, _PART):
            end = min(begin + _PART, old.size)
            until = young.size if end == old.size else int(np.searchsorted(young.hashes, old.hashes[end - 1], "right"))
            one, other = _live(old, begin, end), _live(young, taken, until)
            size = len(one[0]) + len(other[0])
            _interleave(one, other, merged.hashes[done : done + size], merged.locations[done : done + size])
            done, taken = done + size, until
        return merged


def _check_locations(hashes: Words, locations: Words) -> None:
    if hashes.size != locations.size or (locations == GONE).any():
        raise ValueError("each hash has a location")


def _live(run: _Run, begin: int, end: int) -> tuple[Words, Words]:
    hashes, locations = run.hashes[begin:end], run.locations[begin:end]
    kept = locations != GONE
    return (hashes, locations) if kept.all() else (hashes[kept], locations[kept])


def _interleave(one: tuple[Words, Words], other: tuple[Words, Words], hashes: Words, locations: Words) -> None:
    """Merge two sorted parts without sorting again. :param hashes, locations: written to."""
    places = np.searchsorted(one[0], other[0], "right") + np.arange(len(other[0]))
    rest = np.ones(len(hashes), np.bool_)
    rest[places] = False
    for target, first, second in zip((hashes, locations), one, other, strict=True):
        target[rest], target[places] = first, second


class IndexBuilder:
    """A new index out of any number of rows, of which only a bounded part is in memory if the index is in files.

    Rows come in any order. A part of them is put in the order of the first bits of their hashes and stored; in the end
    each bucket, which is what all parts have under the same first bits, is sorted by itself.

    :param share: of the memory, which the index keeps. :param rows: how many rows will come, as far as that is known.
    """

    def __init__(self, folder: Path | None = None, share: Share | None = None, rows: int = 0) -> None:
        self._index = KeyIndex(folder, share)
        # The parts are still there while the index is made of them.
        self._folder = place(folder, share, 2 * ENTRY_BYTES * rows)
        self._waiting: list[tuple[Words, Words]] = []
        self._rows = 0
        self._parts: list[tuple[Words, Words, Places]] = []

    def add(self, hashes: Words, locations: Words) -> None:
        _check_locations(hashes, locations)
        self._waiting.append((hashes, locations))
        self._rows += hashes.size
        if self._rows >= _BUILD_PART:
            self._store()

    def _store(self) -> None:
        pairs, self._waiting, self._rows = self._waiting, [], 0
        hashes, locations = (np.concatenate(each) for each in zip(*pairs, strict=True))
        buckets = (hashes >> _BUCKET_SHIFT).astype(np.uint8)
        order = np.argsort(buckets, kind="stable")
        stored = _new_array(hashes.size, self._folder), _new_array(hashes.size, self._folder)
        stored[0][:], stored[1][:] = hashes[order], locations[order]
        ends = np.cumsum(np.bincount(buckets, minlength=_BUCKETS))
        self._parts.append((*stored, np.append(0, ends)))

    def finish(self) -> KeyIndex:
        """Called once."""
        if self._rows:
            self._store()
        self._waiting, parts, self._parts = [], self._parts, []
        index = self._index
        if not parts:
            index._settle()
            return index
        run = index._new_run(sum(hashes.size for hashes, _, _ in parts))
        done = 0
        for bucket in range(_BUCKETS):
            cuts = [slice(begins[bucket], begins[bucket + 1]) for _, _, begins in parts]
            hashes = np.concatenate([part[0][cut] for part, cut in zip(parts, cuts, strict=True)])
            locations = np.concatenate([part[1][cut] for part, cut in zip(parts, cuts, strict=True)])
            order, end = np.argsort(hashes), done + hashes.size
            run.hashes[done:end], run.locations[done:end] = hashes[order], locations[order]
            done = end
        index._runs.extend([run] if run.size else [])
        index._settle()
        return index
