"""A table whose rows change for hours: what a tick costs, and what lies in folders and memory, stays as it was.

The writer alone, as an app drives it: commits, compaction beside them, and maintenance that removes what is old.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psutil
import pytest

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.check import check_collection
from airflow_provider_mzshare.storage.collections.collection import CHECKPOINT_INTERVAL, Collection
from airflow_provider_mzshare.storage.collections.expiry import expire
from airflow_provider_mzshare.storage.collections.vectors.live_files import live_files
from airflow_provider_mzshare.storage.writing.upkeep import Upkeep
from tests.support.keyed_load import KeyedLoad

NOW = timedelta(0)
GROWTH = 2.0
"""At most, from the first third of a run to the last: a compaction may be due, or just be done."""


@dataclass(frozen=True)
class Weight:
    """What there is after a tick; of the folders after maintenance, in bytes unless it says otherwise."""

    files: int
    live: int
    entries: int
    entry: int
    folder: int
    scratch: int
    memory: int


@dataclass
class Life:
    """:param kept: maintenance keeps so many versions; it runs each time that as many have come."""

    load: KeyedLoad
    kept: int
    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    """CPU of the thread that commits: other work on the machine does not count."""
    weights: list[Weight] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._upkeep = Upkeep(self.load.root, lambda: None, self._note_damage, self.load.states)

    def _note_damage(self, name: CollectionId, damage: str) -> None:
        raise AssertionError(f"{name}: {damage}")

    def run(self, ticks: int, changes: int) -> None:
        for number in range(1, ticks + 1):
            events = self.load.events(changes)
            began, used = time.perf_counter(), time.thread_time()
            assert self.load.commit(events).version is not None
            self._tidy()
            self.seconds.append(time.perf_counter() - began)
            self.used.append(time.thread_time() - used)
            if number % self.kept == 0:
                self._maintain()
                self.weights.append(self._weight())
                print(self._told(), flush=True)
        self._upkeep.close()
        self._tidy(last=True)

    def _tidy(self, *, last: bool = False) -> None:
        self._upkeep.committed(self.load.collection)
        for _, done in self._upkeep.rewritten():
            self.load.states.put_rewritten(self.load.collection, done)
        if not last:
            self._upkeep.after_tick()

    def _maintain(self) -> None:
        collection = Collection.open(self.load.root, self.load.NAME)
        newest = max(0, collection.delta_version - self.kept)
        expire(collection, keep_from_version=newest, now=datetime.now(timezone.utc), grace=NOW)

    def _told(self) -> str:
        """The figures of what has run last."""
        part, weight = self.seconds[-self.kept :], self.weights[-1]
        return (
            f"{len(self.seconds):6,} ticks: median {statistics.median(part) * 1000:.1f} ms, most {max(part):.2f} s, "
            f"CPU {statistics.median(self.used[-self.kept :]) * 1000:.1f} ms, "
            f"{weight.files} files, {weight.live} live, {weight.entries} entries of {weight.entry / 1e3:.0f} kB, "
            f"{weight.folder / 1e6:.0f} MB, scratch {weight.scratch / 1e6:.0f} MB, memory {weight.memory / 1e6:.0f} MB"
        )

    def _weight(self) -> Weight:
        collection = Collection.open(self.load.root, self.load.NAME)
        log = deltalog.list_log(collection.filesystem)
        newest = [Path(collection.uri, deltalog.entry_path(version)).stat().st_size for version in log.entries[-20:]]
        sizes = list(_sizes(Path(collection.uri)))
        scratch = sum(_sizes(Path(self.load.root, "scratch")))
        memory = psutil.Process().memory_info().rss
        live = len(live_files(collection.filesystem, collection.delta_version).files)
        return Weight(len(sizes), live, len(log.entries), max(newest), sum(sizes), scratch, memory)


def _sizes(folder: Path) -> Iterator[int]:
    """Files may go while they are counted."""
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path.stat().st_size
        except FileNotFoundError:
            continue


def lived(folder: Path, *, keys: int, ticks: int, changes: int, kept: int) -> Life:
    life = Life(KeyedLoad(folder, keys), kept)
    try:
        life.run(ticks, changes)
        assert not list(life.load.wrong())
        assert not check_collection(life.load.root, life.load.NAME, deep=True).damages
    finally:
        life.load.close()
    gc.collect()
    return life


def check_bounds(life: Life, *, early: slice, late: slice) -> None:
    """:param early, late: ticks."""
    medians = [statistics.median(life.used[part]) for part in (early, late)]
    assert medians[1] <= 2 * medians[0], f"ticks have become slow: {medians}"
    third = len(life.weights) // 3
    for name in (each.name for each in fields(Weight)):
        begin, end = (
            max(getattr(each, name) for each in part) for part in (life.weights[:third], life.weights[-third:])
        )
        assert end <= GROWTH * begin, f"{name} has grown from {begin:,} to {end:,}"
    assert max(each.entries for each in life.weights) <= life.kept + 2 * CHECKPOINT_INTERVAL


def test_three_hundred_ticks_leave_little(tmp_path: Path) -> None:
    life = lived(tmp_path, keys=20_000, ticks=300, changes=500, kept=50)
    check_bounds(life, early=slice(50, 150), late=slice(-100, None))


@pytest.mark.full(seconds=600)
@pytest.mark.timeout(3_600)
def test_two_hours_of_ticks_cost_what_the_first_minutes_cost(tmp_path: Path) -> None:
    life = lived(tmp_path, keys=200_000, ticks=7_200, changes=2_000, kept=300)
    check_bounds(life, early=slice(500, 1_000), late=slice(-500, None))
