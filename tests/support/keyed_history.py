"""One keyed collection with deletion vectors, made by real commits, and what a dict says of each of its versions.

It also remembers every log entry, so that it can say which files each version needs after maintenance took the entries.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from airflow_provider_mzshare.storage.collections import expiry
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.check import check_collection
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector
from airflow_provider_mzshare.storage.collections.vectors.live_files import live_files
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewritten
from tests.integration.delta.test_keyed_commits import adding
from tests.support.keyed_readers import Rows

ROW = ("key", "n", "_mz_tick", "_mz_partition", "_mz_offset")
Row = tuple[Any, ...]
State = Mapping[str, Row]

KEPT_TICKS = 4
"""Maintenance keeps the newest tick and as many before it."""


class History:
    """A table that adds up the numbers of a key: whatever is applied twice, or to the wrong row, shows.

    :param vectors: else it is merged.
    """

    def __init__(self, root: Path, seed: int, *, keys: int = 12, vectors: bool = True) -> None:
        self.scene, self.random, self.keys = adding(root, vectors=vectors), random.Random(seed), keys
        self.vectors = vectors
        self.path = Path(self.scene.collection.uri)
        self.tick, self.now = 0, dict[str, Row]()
        self.at: dict[int, State] = {0: {}}
        self.ticks: list[int] = []
        """The versions that ticks have made."""
        self.entries: dict[int, deltalog.Entry] = {}
        self.written: Rewritten | None = None
        self.kept = 0
        self.held: int | None = None
        """A version that maintenance keeps although it is old."""
        self._remember()

    def close(self) -> None:
        self.scene.states.close()

    @property
    def newest(self) -> int:
        return max(self.at)

    # ── what is done to it ────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, *, most: int = 8) -> None:
        """A tick: keys are set, set again and taken away."""
        self.tick += 1
        pairs: list[tuple[str, str | None]] = []
        for _ in range(self.random.randint(1, most)):
            key, number = f"k{self.random.randrange(self.keys)}", self.random.choice((None, 1, 7, 30))
            pairs.append((key, None if number is None else json.dumps({"n": number})))
        records = self.scene.records(*pairs)
        for (key, value), (partition, offset, *_) in zip(pairs, records, strict=True):
            old = self.now.pop(key, None)
            if value is not None:
                total = json.loads(value)["n"] + (old[1] if old else 0)
                self.now[key] = (key, total, self.tick, partition, offset)
        result = self.scene.tick(self.tick, self.scene.events(self.tick, records), force=True)
        assert result.version is not None
        self.ticks.append(result.version)
        self._remember()

    def commits(self, count: int) -> None:
        for _ in range(count):
            self.commit()

    def write_compaction(self) -> None:
        while not self.vectors and len(self.scene.opened().table.file_uris()) < 2:
            self.commit()
        self.written = self.scene.states.rewrite(self.scene.opened(), min_files=2)
        assert self.written is not None

    def put_compaction(self) -> None:
        assert self.written is not None
        before = self.newest
        self.scene.states.put_rewritten(self.scene.collection, self.written)
        self.written = None
        self._remember()
        assert self.newest == before + 1

    def compact(self) -> None:
        """With a tick between, whose changes of the same rows are carried over; a merge writes these files anew."""
        self.write_compaction()
        if self.vectors:
            self.commit()
        self.put_compaction()

    def checkpoint(self) -> None:
        DeltaTable(str(self.path)).create_checkpoint()

    def maintain(self, *, hours: float = 2, dry_run: bool = False) -> expiry.Expiry:
        """``since`` moves on to the tick some ticks ago.

        :param hours: after which this is done.
        """
        newer = self.ticks[-KEPT_TICKS - 1]
        self.kept = max(self.kept, newer if self.held is None else min(newer, self.held))
        now = datetime.now(timezone.utc) + timedelta(hours=hours)
        return expiry.expire(self.scene.opened(), keep_from_version=self.kept, now=now, dry_run=dry_run)

    def grow_old(self, *, days: float) -> None:
        """What is there is so old: entries, and the files beside them."""
        then = time.time() - days * 86_400
        for path in self.path.rglob("*"):
            if path.is_file():
                os.utime(path, (then, then))

    def followed(self) -> None:
        """Others have committed what changes no rows."""
        self._remember()

    def _remember(self) -> None:
        files = self.scene.opened().filesystem
        for version in range(len(self.entries), DeltaTable(str(self.path)).version() + 1):
            entry = deltalog.read_entry(files, version)
            assert entry is not None
            self.entries[version] = entry
            self.at[version] = dict(self.now)

    # ── what must be true ─────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, version: int | None = None) -> Rows:
        return Counter(self.at[self.newest if version is None else version].values())

    def changes(self, first: int, last: int) -> Rows:
        """What the commits from one version to another did, as the change feed tells it."""
        return Counter(change for version in range(first, last + 1) for change in self._changes_of(version))

    def _changes_of(self, version: int) -> Iterator[Row]:
        before, after = self.at[version - 1], self.at[version]
        for key in {*before, *after}:
            old, new = before.get(key), after.get(key)
            if old and new and old != new:
                yield version, "update_preimage", *old
                yield version, "update_postimage", *new
            elif old and not new:
                yield version, "delete", *old
            elif new and not old:
                yield version, "insert", *new

    def earlier(self, count: int = 3) -> list[int]:
        """Versions of ticks before the newest that maintenance has kept, the oldest that it keeps among them."""
        kept = [version for version in self.ticks[:-1] if version >= self.kept]
        return [kept[0], *sorted(self.random.sample(kept[1:], count - 1))]

    def damages(self) -> list[str]:
        return [str(each) for each in check_collection(self.scene.root, self.path.name, deep=True).damages]

    def live_vector(self) -> Path:
        """The newest file with a vector that a read of now needs."""
        files = live_files(self.scene.opened().filesystem, self.newest).files.values()
        paths = [self.path / file.vector.path for file in files if file.vector and file.vector.path]
        return max(paths, key=lambda path: path.stat().st_mtime_ns)

    def needed(self) -> set[str]:
        """The files that versions from the oldest kept one on need, and the change files of their entries."""
        files: dict[str, str | None] = {}
        found: set[str] = set()
        for version, entry in sorted(self.entries.items()):
            for path in entry.removed():
                files.pop(path, None)
            files.update(_adds(entry))
            if version >= self.kept:
                found |= {*files, *(vector for vector in files.values() if vector), *entry.changes()}
        return found

    def versions_logged(self) -> list[int]:
        return [int(path.stem) for path in self.path.glob("_delta_log/*.json")]

    def present(self) -> set[str]:
        """The data files, vectors and change files in the folder."""
        found = (*self.path.glob("*.parquet"), *self.path.glob("*.bin"), *self.path.glob("_change_data/*"))
        return {str(path.relative_to(self.path)) for path in found}


def _adds(entry: deltalog.Entry) -> Iterable[tuple[str, str | None]]:
    for action in entry.actions:
        if "add" in action:
            vector = Vector.from_log(action["add"].get("deletionVector"))
            yield action["add"]["path"], vector.path if vector else None
