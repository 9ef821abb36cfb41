"""How an app changes collections with deletion vectors: planned with an index, put where there is no entry."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.keyed_commits import Answer, put_counts, rows_to_carry
from tests.support.simulation.delta import Entry
from tests.support.simulation.mutants import Mutant
from tests.support.simulation.steps import PUTTING, NoIndex, NoRoom, Steps, Unreadable
from tests.support.simulation.vector_delta import VectorDelta
from tests.support.simulation.vector_index import Index, list_log
from tests.support.simulation.vectors import Rewritten, VectorChange, plan, rewrite

if TYPE_CHECKING:
    from tests.support.simulation.world import World

YOUNG = 12
"""Hours after which a writer no longer puts its own files: half of the age at which maintenance removes them."""
Putting = Generator[Any, None, Answer]


class VectorRows:
    """What one app knows of collections with vectors. Planning raises Unreadable if the version is no longer there.

    :param sent_on: where a plan is put that is meant for the version after another.
    """

    def __init__(self, world: World, faults: bool, sent_on: Callable[[Any, int, Entry], int]) -> None:
        self._world, self._faults, self._mutant, self._sent_on = world, faults, world.mutant, sent_on
        self.indexes: dict[CollectionId, Index] = {}
        self.rebuilds = True
        """Else a commit does not wait for an index that would have to be made anew."""
        self.compacts = True
        self._beside: dict[CollectionId, Rewritten] = {}

    # ── a tick or a group ─────────────────────────────────────────────────────────────────────────────────────────────

    def planned(self, delta: VectorDelta, version: int, events: Iterable[int]) -> Generator[Any, None, VectorChange]:
        """On a version that was loaded. Events that change no row make no change."""
        index = self.index(delta)
        events = tuple(events)
        if events:
            yield from index.bring_to(version, rebuilds=self.rebuilds)
        return plan(delta.kind, index.find(events), index.files, events, delta.names)

    def put(self, delta: VectorDelta, on: int, entry: Entry) -> Putting:
        index = self.index(delta)
        if self._mutant is Mutant.CHANGES_WITHOUT_INSERTS:
            _forget_inserts(entry.change)
        if self._mutant is Mutant.INDEX_BEFORE_COMMIT:
            delta.contents.update(entry.change.objects)
            index.committed(on, entry.change)
        answer = yield from self._put(delta, on, entry)
        if answer == "put":
            index.committed(on, entry.change)
        return answer

    def index(self, delta: VectorDelta) -> Index:
        name = CollectionId(delta.name)
        if name not in self.indexes:
            counts = self._world.catalog.counts
            self.indexes[name] = Index(delta, self._mutant, self._world.random, counts)
        return self.indexes[name]

    def leave(self, name: CollectionId) -> None:
        """It is no member any more: what was compacted beside its ticks is dropped."""
        if done := self._beside.pop(name, None):
            self._discard(self._delta(name), done.outputs)

    # ── compaction ────────────────────────────────────────────────────────────────────────────────────────────────────

    def tidy(self, own: AbstractSet[CollectionId]) -> Steps:
        """Put what was written beside the ticks since the last call, and write the next."""
        chance = self._world.random
        if not self.compacts:
            return
        for name, done in sorted(self._beside.items()):
            if chance.random() < 0.3:
                continue  # it takes longer
            del self._beside[name]
            try:
                yield from self._put_rewritten(self._delta(name), done)
            except (NoIndex, NoRoom, Unreadable):
                self._count("compactions dropped")
        for name in sorted(own - self._beside.keys()):
            delta = self._world.catalog.delta[name]
            if isinstance(delta, VectorDelta) and chance.random() < 0.8:
                self._rewrite(delta)

    def _rewrite(self, delta: VectorDelta) -> None:
        """Small files and worn ones; a file of which no row is left becomes none."""
        index, files = self.index(delta), delta.live[-1]
        chance = self._world.random
        if index.version is None or not files:
            return
        inputs = chance.sample(sorted(files), chance.randint(1, len(files)))
        if len(inputs) == 1 and not files[inputs[0]].gone:
            return
        done = rewrite(inputs, files, delta.contents, delta.names, mirror=index.mirror, hour=delta.storage.hour)
        for path, rows in done.outputs.items():
            delta.write(path, rows)
        self._beside[CollectionId(delta.name)] = done

    def _put_rewritten(self, delta: VectorDelta, done: Rewritten) -> Steps:
        index, at = self.index(delta), delta.load()
        yield from index.bring_to(at.version, rebuilds=self.rebuilds)
        live = {path: file.gone for path, file in index.files.items()}
        gone = rows_to_carry(done.inputs, live)
        if gone is None and self._mutant is Mutant.STALE_COMPACTION:
            gone = {}
        is_old = delta.storage.hour - done.written > YOUNG and self._mutant is not Mutant.OLD_OUTPUTS_PUT
        if gone is None or is_old or done.mirror != index.mirror:
            self._discard(delta, done.outputs)
            self._count("compactions dropped")
            return
        carried = done.carried(gone)
        self._count("vectors carried over", bool(carried))
        change = done.change({} if self._mutant is Mutant.LATER_VECTORS_LOST else carried, delta.names)
        index.hold(done, at.version + 1)
        answer = yield from self._put(delta, at.version, Entry("", 0, 0, 0, change=change))
        self._count(f"compactions {answer}")
        if answer == "put" or (answer == "unclear" and self._mutant is Mutant.MAPPED_UNCLEAR):
            index.rewritten(at.version, done, change)

    def _delta(self, name: CollectionId) -> VectorDelta:
        delta = self._world.catalog.delta[name]
        assert isinstance(delta, VectorDelta)
        return delta

    # ── the log ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _put(self, delta: VectorDelta, on: int, entry: Entry) -> Putting:
        """The files, then the entry; and it counts only if the log shows it afterwards."""
        if self._mutant is not Mutant.FILES_AFTER_ENTRY:
            yield from self._write(delta, entry.change)
        yield PUTTING
        on = self._sent_on(delta, on, entry)
        version = on + 1
        chance = self._world.random.random
        if self._world.is_full:
            if chance() < 0.3:
                delta.put(on, entry)
            self._count("no room")
            raise NoRoom
        fate = self._world.fate() if self._faults else 1.0
        if fate < 0.5:
            return self._unanswered(delta, on, entry, fate)
        if fate < 1.0:
            return "unclear"
        put = delta.overwrite if self._mutant is Mutant.PUT_OVERWRITES else delta.put
        is_ours = put(on, entry)
        if not is_ours and self._mutant is not Mutant.NOT_OURS_COUNTS:
            self._discard(delta, entry.change.objects)
            return "refused"
        counts = yield from self._counts(delta, version, is_ours)
        if counts and self._mutant is Mutant.FILES_AFTER_ENTRY:
            yield from self._write(delta, entry.change)
        self._count("puts in holes", is_ours and not counts)
        return "put" if counts else "unclear"

    def _unanswered(self, delta: VectorDelta, on: int, entry: Entry, fate: float) -> Answer:
        if fate < 0.35:
            self._count("keyed answers lost", delta.put(on, entry))
        else:
            delta.put_late(on, entry)
            self._count("keyed commits late")
        if self._mutant is Mutant.UNCLEAR_TAKES_FILES:
            self._discard(delta, entry.change.objects)
        return "unclear"

    def _counts(self, delta: VectorDelta, version: int, is_ours: bool) -> Generator[Any, None, bool]:
        yield
        entries, checkpoints = yield from list_log(delta, self._world.random)
        if self._mutant is Mutant.HOLE_COUNTS:
            return True
        return put_counts(
            version,
            is_ours=is_ours or self._mutant is Mutant.NOT_OURS_COUNTS,
            entries=entries | {version - 1} if self._mutant is Mutant.GONE_BASE_COUNTS else entries,
            checkpoints=() if self._mutant is Mutant.BELOW_CHECKPOINT_COUNTS else checkpoints,
        )

    def _write(self, delta: VectorDelta, change: VectorChange) -> Steps:
        for name, content in change.objects.items():
            delta.write(name, content)
            yield

    def _discard(self, delta: VectorDelta, names: Iterable[str]) -> None:
        """Files that no entry will name."""
        for name in names:
            delta.objects.pop(name, None)

    def _count(self, what: str, times: int = 1) -> None:
        if times:
            self._world.catalog.counts[what] += times


def _forget_inserts(change: VectorChange) -> None:
    if change.changes:
        kept = tuple(image for image in change.objects[change.changes] if image[1] is not None)
        change.objects[change.changes] = kept  # type: ignore[index]
