"""Maintenance of one collection with vectors: what since has passed goes, step by step, and may end anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.log_upkeep import LogRemovals, log_part, log_removals, may_go_unnamed
from tests.support.simulation.delta import Entry
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.steps import Steps
from tests.support.simulation.vector_delta import VectorDelta, files_of
from tests.support.simulation.vector_index import Listed, list_log
from tests.support.simulation.vector_writing import YOUNG

if TYPE_CHECKING:
    from tests.support.simulation.vector_world import VectorWorld

UNNAMED = 24
"""Hours after which a file that no entry names may go."""
_KEPT = {Mutant.DEAD_VECTORS_KEPT: "v", Mutant.DEAD_CHANGES_KEPT: "c"}
"""The kinds of files that are never looked at."""


class Maintenance:
    """:param keep: the oldest version that may still be read."""

    def __init__(self, world: VectorWorld, name: CollectionId, keep: int) -> None:
        delta = world.catalog.delta[name]
        assert isinstance(delta, VectorDelta)
        self._world, self._mutant, self._delta, self._keep = world, world.mutant, delta, keep

    def run(self) -> Steps:
        """The folder is listed before the log is read, and data goes before the log."""
        delta = self._delta
        present = {name: delta.born[name] for name in delta.objects if name[0] not in _KEPT.get(self._mutant, ())}
        yield
        newest = delta.newest
        if not delta.is_loadable(self._keep):
            return
        read = dict(delta.log)
        listed = yield from list_log(delta, self._world.random)
        if self._mutant is Mutant.LISTED_BEFORE_READ:
            read = dict(delta.log)
        gone = self._dead(read, listed)
        old = {name for name, born in present.items() if name not in gone and self._is_late(born, newest)}
        yield
        if not all(version in delta.log for version in range(self._keep + 1, delta.newest + 1)):
            return
        removed = gone | (old - self._named())
        for name in sorted(removed & present.keys()):
            yield
            if name in delta.objects:
                delta.remove(name, keep_from=self._world.keep_from(delta))
                self._world.catalog.counts["files removed" if name in gone else "unnamed files removed"] += 1
        yield from self._remove_log()

    def _dead(self, read: Mapping[int, Entry], listed: Listed) -> set[str]:
        """Files and vectors that the kept version no longer has, and change files of entries before it."""
        dead: set[str] = set()
        for version, entry in sorted(log_of(self._delta, read, listed, self._mutant).items()):
            if version <= self._keep:
                dead |= entry.change.removed | set(self._vectors(entry.change.added.values()))
                dead |= self._changes(entry) if version < self._keep else set()
        return dead - files_of(self._delta.live[self._keep])

    def _named(self) -> set[str]:
        """By any version from the kept one to the newest of now."""
        delta = self._delta
        kept = delta.live[self._keep]
        named = {*kept, *self._vectors(file.vector for file in kept.values())}
        named |= self._changes(delta.log[self._keep]) if self._keep in delta.log else set()
        for version in range(self._keep + 1, delta.newest + 1):
            entry = delta.log[version]
            named |= {*entry.change.added, *self._vectors(entry.change.added.values())} | self._changes(entry)
        return named

    def _vectors(self, names: Iterable[str | None]) -> set[str]:
        return set() if self._mutant is Mutant.VECTORS_UNTRACKED else {name for name in names if name}

    def _changes(self, entry: Entry) -> set[str]:
        is_tracked = self._mutant is not Mutant.CHANGES_UNTRACKED
        return {entry.change.changes} if entry.change.changes and is_tracked else set()

    def _is_late(self, born: int, newest: int) -> bool:
        """Can no commit that sleeps still name this file, if no entry names it?"""
        age = self._delta.storage.hour - born
        young = YOUNG
        if self._mutant is Mutant.UNNAMED_OF_ANY_AGE:
            age, young = UNNAMED, 0
        # When the file was no longer young, the newest version was one from before the newest entry of now.
        passed = self._delta.landed[newest] > born + young or self._mutant is Mutant.UNNAMED_BY_AGE_ALONE
        min_age = timedelta(hours=UNNAMED)
        return may_go_unnamed(
            timedelta(hours=age), min_age=min_age, newest_when_listed=newest - int(passed), newest=newest
        )

    def _remove_log(self) -> Steps:
        delta = self._delta
        listed = yield from list_log(delta, self._world.random)
        for kind, version in self._order(listed):
            yield
            if kind == "checkpoint":
                delta.remove_checkpoint(version)
            else:
                delta.remove_entry(version)
                self._world.catalog.counts["log entries removed"] += 1
            for needed in (self._world.keep_from(delta), delta.newest):
                delta.check_readable(needed)

    def _order(self, listed: Listed) -> list[tuple[str, int]]:
        entries, checkpoints = listed
        keep = self._delta.newest if self._mutant is Mutant.REMOVED_BEFORE_SINCE else self._keep
        gone = log_removals(entries, checkpoints, keep_from=keep)
        if self._mutant is Mutant.REMOVED_WITHOUT_CHECKPOINT:
            gone = LogRemovals((), tuple(sorted(version for version in entries if version < keep)))
        if self._mutant is Mutant.REMOVED_IN_ANY_ORDER:
            gone = gone._replace(entries=tuple(self._world.random.sample(gone.entries, len(gone.entries))))
        both: list[tuple[str, int]] = [("checkpoint", version) for version in gone.checkpoints]
        entries_last = [("entry", version) for version in gone.entries]
        return entries_last + both if self._mutant is Mutant.CHECKPOINTS_GO_LAST else both + entries_last


def log_of(delta: VectorDelta, read: Mapping[int, Entry], listed: Listed, mutant: Mutant) -> dict[int, Entry]:
    """The entries that are part of the log; all of them have to be those that have made its versions.

    :param read: before the log was listed.
    """
    part = listed[0] if mutant is Mutant.HOLES_ARE_LOG else log_part(*listed)
    found = {version: entry for version, entry in read.items() if version in part}
    if wrong := sorted(
        version for version, entry in found.items() if version and entry is not delta.entries[version - 1]
    ):
        raise Violation(f"{delta.name}: entries {wrong} stand in a hole, and are taken for the log: {listed}")
    return found


def foreign_cleanup(delta: VectorDelta, stop: Any) -> None:
    """Somebody else's: everything below the newest checkpoint, in the order of names, as far as it comes."""
    base = max(delta.checkpoints, default=0)
    for version in range(base):
        if stop():
            return
        delta.remove_checkpoint(version)
        delta.remove_entry(version)
