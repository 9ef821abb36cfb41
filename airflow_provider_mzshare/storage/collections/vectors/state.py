"""What a process knows of a collection's rows at one version: its files, their vectors, and where the row of a key is.

It is scratch: it can be made anew from the collection at any time. It describes one version of the log and moves from
entry to entry; where it cannot follow an entry it is made anew. It changes after a commit is known, never before.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.key_index import Move, Seen, index_move
from airflow_provider_mzshare.core.ticklog.log_upkeep import log_part
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.vectors import key_hashes as hashing
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import bitmap_of, read_vector, rows_of
from airflow_provider_mzshare.storage.collections.vectors.building import FileRows, add_file, build_index
from airflow_provider_mzshare.storage.collections.vectors.files import read_rows
from airflow_provider_mzshare.storage.collections.vectors.index import IndexBuilder, KeyIndex, files_of, locations_of
from airflow_provider_mzshare.storage.collections.vectors.index import rows_of as rows_at
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile, LiveFiles, files_at
from airflow_provider_mzshare.storage.collections.vectors.memory import IndexMemory, Share
from airflow_provider_mzshare.storage.collections.vectors.mirror import Mirror
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewritten

log = logging.getLogger(__name__)

Locations = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Before:
    """The rows of some keys, and where each of them is."""

    rows: pa.Table
    hashes: npt.NDArray[np.uint64]
    locations: Locations


@dataclass(frozen=True)
class Changed:
    """What an own commit has done.

    :param touched: the files with new vectors, and all rows that these vectors take away.
    :param added: the file of new rows, if there are any.
    """

    version: int
    before: Before
    touched: Sequence[tuple[LiveFile, BitMap]]
    added: LiveFile | None
    rows: pa.Table


@dataclass(frozen=True)
class _Held:
    """A compaction, and the version that it was put at."""

    version: int
    done: Rewritten


class IndexLate(Exception):
    """To get to the version would take longer than whoever asks for it waits. The state is as it was."""


class Interrupted(Exception):
    """Whoever asked for the index does not want it any more."""


class KeyState:
    """Use it from one thread at a time; ``interrupt`` is for any thread.

    :param folder: of the job's own, made here and removed by ``close``.
    :param keys: the columns that make a row's key.
    :param share: of the memory. Where it is too small the index is in files that are mapped. None: all that it needs.
    """

    def __init__(self, folder: Path, keys: Sequence[str], share: Share | None = None) -> None:
        self._folder, self._keys, self._share = folder, tuple(keys), share or IndexMemory().share()
        self._made, self._next = 0, count()
        self._interrupted = False
        self._forget()

    def _forget(self) -> None:
        self.files: LiveFiles | None = None
        self._bitmaps: dict[str, BitMap] = {}
        self._numbers: dict[str, int] = {}
        self._paths: dict[int, str] = {}
        self._index: KeyIndex | None = None
        self._mirror: Mirror | None = None
        self._held: _Held | None = None
        """The compaction that was put last, until it is known what became of it."""

    @property
    def version(self) -> int | None:
        """The one that it describes; None while it describes none."""
        return self.files.version if self.files else None

    @property
    def keys_known(self) -> int:
        return len(self._index) if self._index is not None else 0

    @property
    def disk_bytes(self) -> int:
        """Of the part of the index that does not fit into the memory."""
        return self._index.disk_bytes if self._index is not None else 0

    def drop(self) -> None:
        """It is not known to be right any more: the next ``bring_to`` makes it anew."""
        for part in (self._index, self._mirror):
            if part is not None:
                part.close()
        self._forget()
        self._share.takes(0)
        shutil.rmtree(self._folder, ignore_errors=True)

    close = drop

    # ── to a version ──────────────────────────────────────────────────────────────────────────────────────────────────

    def bring_to(self, collection: Collection, most: int | None = None) -> None:
        """Make it describe the version that ``collection`` has loaded.

        :param most: how many rows may be read for one step of that; else ``IndexLate``. None: any number.
        """
        target = collection.delta_version
        try:
            while self.version != target:
                if not self._follow(collection, target, most):
                    self._rebuild(collection, most)
        except IndexLate:
            raise
        except BaseException:
            self.drop()
            raise

    def _follow(self, collection: Collection, target: int, most: int | None) -> bool:
        """One entry further; False if it has to be made anew."""
        if self.files is None:
            return False
        described = self.files.version
        entry = deltalog.read_entry(collection.filesystem, described + 1)
        seen = Seen(entry.version, entry.entry_id, is_whole=True) if entry else None
        listed = deltalog.list_log(collection.filesystem)
        held = self._held
        mappings = {held.version: held.done.entry_id} if held and self.is_mirrored(held.done) else {}
        part = log_part(listed.entries, listed.checkpoints)
        move = index_move(described, seen, loaded=target, log=part, plans={}, mappings=mappings)
        if entry is None or move is Move.REBUILD:
            return False
        try:
            if held and move is Move.MAPPED:
                return self._follow_rewritten(collection, entry, held.done)
            return self._follow_foreign(collection, entry, most)
        except FileNotFoundError:
            # What it names was removed since: it is not whole.
            return False

    def _follow_rewritten(self, collection: Collection, entry: deltalog.Entry, held: Rewritten) -> bool:
        """A compaction of ours whose answer was lost."""
        assert self.files is not None
        after = self.files.followed_by(entry)
        self.rewritten(held, after, {path: self._vector(collection, after.files[path]) for path in held.numbers})
        return True

    def _follow_foreign(self, collection: Collection, entry: deltalog.Entry, most: int | None) -> bool:
        """Rows in files or vectors that it takes away leave, rows of files that it adds enter."""
        assert self.files is not None
        before, after = self.files.files, self.files.followed_by(entry)
        gone = [path for path in before if path not in after.files]
        changed = [file for path, file in after.files.items() if path in before and file.vector != before[path].vector]
        new = [file for path, file in after.files.items() if path not in before]
        _check_short(collection, new, most)
        bitmaps = {file.path: self._vector(collection, file) for file in (*changed, *new)}
        if any(self.bitmap(file.path) - bitmaps[file.path] for file in changed):
            # Rows that were taken away are back.
            return False
        index = self._parts()[0]
        for file in changed:
            index.drop_rows(self._locations(file.path, bitmaps[file.path] - self.bitmap(file.path)))
        index.drop_files([self._numbers[path] for path in gone])
        for path in gone:
            self._let_go(path)
        self._bitmaps |= bitmaps
        for rows in self._rows(collection, new):
            add_file(rows, self._keys, collection.schema, self._parts()[1], index)
        self.files = after
        log.info("%s: the index follows log entry %s", collection.collection_id, entry.version)
        return True

    def _rebuild(self, collection: Collection, most: int | None) -> None:
        began = time.monotonic()
        found = files_at(collection)
        _check_short(collection, found.files.values(), most)
        self.drop()
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir(parents=True)
        self._mirror = Mirror(folder)
        self._bitmaps = {file.path: self._vector(collection, file) for file in found.files.values()}
        files = list(found.files.values())
        builder = IndexBuilder(folder, self._share, rows=_live_rows(files))
        rows = self._rows(collection, files)
        self._index = build_index(rows, self._keys, collection.schema, self._mirror, builder)
        self.files = found
        self._tell_made(collection.collection_id, time.monotonic() - began)

    def _tell_made(self, name: CollectionId, seconds: float) -> None:
        told = f"{name}: the index of version {self.version} has {self.keys_known:,} keys, made in {seconds:.2f} s"
        if self.disk_bytes:
            log.warning("%s, on disk, which is slower: MZSHARE_KEY_INDEX_MB is too small for it", told)
        else:
            log.info("%s", told)

    def _rows(self, collection: Collection, files: Iterable[LiveFile]) -> Iterator[FileRows]:
        for file in files:
            batches = self._unless_interrupted(read_rows(collection.uri, collection.filesystem, file.path))
            yield FileRows(self._number(file.path), batches, rows_of(self.bitmap(file.path)))

    def _unless_interrupted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self._interrupted:
                raise Interrupted
            yield batch

    def interrupt(self) -> None:
        """Nobody wants it any more: reading files for it ends, now and later, by ``Interrupted``."""
        self._interrupted = True

    def _parts(self) -> tuple[KeyIndex, Mirror]:
        if self._index is None or self._mirror is None:
            raise ValueError("it describes no version")
        return self._index, self._mirror

    def _number(self, path: str) -> int:
        if path not in self._numbers:
            self._numbers[path] = number = next(self._next)
            self._paths[number] = path
        return self._numbers[path]

    def _let_go(self, path: str) -> None:
        """The file is no longer part of the collection."""
        number = self._numbers.pop(path)
        del self._paths[number]
        self._bitmaps.pop(path, None)
        self._parts()[1].drop(number)

    def _locations(self, path: str, rows: BitMap) -> Locations:
        return locations_of(self._numbers[path], rows_of(rows))

    @staticmethod
    def _vector(collection: Collection, file: LiveFile) -> BitMap:
        return read_vector(collection.filesystem, file.vector) if file.vector else BitMap()

    # ── what commits ask and tell ─────────────────────────────────────────────────────────────────────────────────────

    def find(self, keys: pa.Table, shape: pa.Schema) -> Before:
        """The rows whose key is among ``keys``, which has no key twice."""
        index, mirror = self._parts()
        hashes = hashing.key_hashes(keys)
        asked, locations = index.find(hashes)
        rows = mirror.take(locations, shape)
        wanted = keys.take(pa.array(asked))
        same = reduce(pc.and_, (pc.equal(rows.column(name), wanted.column(name)) for name in self._keys))
        mask = np.asarray(same, bool)
        return Before(rows.filter(pa.array(mask)), hashes[asked][mask], locations[mask])

    def grown(self, locations: Locations) -> list[tuple[LiveFile, BitMap]]:
        """The files that hold these rows, and what their vectors take away once these rows are gone too."""
        assert self.files is not None
        numbers = files_of(locations)
        grown = []
        for number in np.unique(numbers):
            path = self._paths[int(number)]
            rows = bitmap_of(rows_at(locations[numbers == number]))
            grown.append((self.files.files[path], self.bitmap(path) | rows))
        return grown

    def committed(self, change: Changed) -> None:
        """An own commit is known to be there."""
        try:
            self._apply(change)
        except BaseException:
            self.drop()
            raise

    def _apply(self, change: Changed) -> None:
        assert self.files is not None
        index, mirror = self._parts()
        files = dict(self.files.files)
        for file, bitmap in change.touched:
            files[file.path], self._bitmaps[file.path] = file, bitmap
        index.drop(change.before.hashes, change.before.locations)
        if change.added is not None:
            number = self._number(change.added.path)
            files[change.added.path] = change.added
            mirror.put(number, change.rows.to_batches(), change.rows.schema)
            hashes = hashing.key_hashes(change.rows.select(list(self._keys)))
            index.add(hashes, locations_of(number, np.arange(change.rows.num_rows)))
        self.files = LiveFiles(change.version, files)

    def passed(self, version: int) -> None:
        """An own commit that changes no row is known to be there."""
        if self.files is not None and self.files.version == version - 1:
            self.files = LiveFiles(version, self.files.files)

    def hold(self, rewritten: Rewritten, version: int) -> None:
        """A compaction is about to be put: whatever the answer will be, its entry may stand in the log."""
        self._held = _Held(version, rewritten)

    def discard(self, rewritten: Rewritten) -> None:
        """A compaction whose entry is not in the log and never will be: what the mirror has of it goes."""
        self._held = None
        mirror = rewritten.mirror
        for number in rewritten.numbers.values():
            if mirror is not None and number in mirror:
                mirror.drop(number)

    def rewritten(self, done: Rewritten, after: LiveFiles, carried: Mapping[str, BitMap]) -> None:
        """A compaction whose mapping we hold is the next entry. Rows have moved, and none has changed.

        :param carried: by output, the rows that were taken away after the inputs were read.
        """
        index, _ = self._parts()
        self._held = None
        index.remap({self._numbers[path]: where for path, where in done.mapping.items()})
        for path, number in done.numbers.items():
            self._numbers[path], self._paths[number] = number, path
            self._bitmaps[path] = carried.get(path, BitMap())
        for path in done.inputs:
            self._let_go(path)
        self.files = after

    def is_mirrored(self, rewritten: Rewritten) -> bool:
        """Whether the mirror that the compaction has written to is still the one in use."""
        return self._mirror is not None and rewritten.mirror is self._mirror

    @property
    def mirror(self) -> Mirror | None:
        return self._mirror

    @property
    def numbers(self) -> Iterator[int]:
        """Numbers for files. Any thread may take the next one."""
        return self._next

    def bitmap(self, path: str) -> BitMap:
        """The rows of a file that are taken away."""
        return self._bitmaps.get(path) or BitMap()


def rows_in(collection: Collection) -> int:
    """How many rows an index of the version that is loaded would have, as far as its log says."""
    return _live_rows(files_at(collection).files.values())


def _check_short(collection: Collection, files: Iterable[LiveFile], most: int | None) -> None:
    if most is not None and (rows := _live_rows(files)) > most:
        raise IndexLate(f"collection {collection.collection_id}: {rows:,} rows would have to be read for its index")


def _live_rows(files: Iterable[LiveFile]) -> int:
    """As far as the log says; a row takes a byte at least."""
    return sum((file.size if file.rows is None else file.rows) - file.deleted for file in files)
