"""The rules for a commit to a keyed collection, as decisions without input, output or clock.

The rows of a keyed collection depend on the rows before them. So a commit is planned on one version of the collection
and put at the next version, or not at all. This holds for rows, for the empty fence, and for a compaction. A plan is
put once: after any answer but "it is there", the collection is loaded again, and what it holds decides.

How an index of keys follows such commits is in key_index.py; what may be removed of their log, in log_upkeep.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol, TypeVar

Answer = Literal["put", "refused", "unclear"]
"""To a put. ``refused``: the version was taken. ``unclear``: any other error. After it the entry may be there or not,
or may still arrive."""


class Vector(Protocol):
    """The numbers of rows that are taken away from a file: a set, or a bitmap."""

    def __sub__(self: V, other: V, /) -> V: ...

    def __len__(self) -> int: ...


V = TypeVar("V", bound=Vector)


@dataclass(frozen=True)
class TickGoal:
    """A collection is to hold one tick. Its events follow any earlier tick that the log knows.

    :param repaired: the tick was put back by a catalog repair: the collection may be past it.
    """

    mz_timestamp: int
    repaired: bool = False


@dataclass(frozen=True)
class GroupGoal:
    """A collection is to hold a group of ticks. Its events follow exactly the tick ``planned``, or no tick if None."""

    mz_timestamp: int
    planned: int | None


@dataclass(frozen=True)
class Loaded:
    """A collection as it was loaded for a plan.

    :param stored: the time of its newest tick at this version.
    """

    version: int
    stored: int | None

    @property
    def slot(self) -> int:
        """The only version at which a plan made upon this one may be put."""
        return self.version + 1


@dataclass(frozen=True)
class Sent:
    """The plan that was put last.

    :param version: where it was put.
    """

    version: int
    answer: Answer


class Step(Enum):
    """What to do next."""

    PLAN = "plan on the loaded version, and put the plan at its slot"
    DONE = "the plan that was put last is there"
    HELD = "the tick is there, by another's commit or by one whose answer was lost"
    PASSED = "the collection is past a repaired tick: its log says whether it holds it"
    RELOAD = "the log is longer than the loaded version: load it again"
    PLAN_AGAIN = "the group's events do not follow what the collection holds"
    FENCED = "another writer has gone on"
    UNKNOWN = "the log does not know the tick that the collection holds"


def next_step(
    goal: TickGoal | GroupGoal,
    loaded: Loaded,
    sent: Sent | None = None,
    *,
    knows: Callable[[int], bool],
    is_own: Callable[[], bool],
) -> Step:
    """Called before each plan, with the collection as it was loaded after the last answer.

    :param knows: is there a tick of this time in the catalog's log?
    :param is_own: does the entry that carries the goal's time say what this commit would say of itself? Asked only
        about a group, and only if the collection holds that time.
    """
    if sent is not None:
        if sent.answer == "put":
            return Step.DONE
        shortest = sent.version if sent.answer == "refused" else sent.version - 1
        if loaded.version < shortest:
            return Step.RELOAD
    if isinstance(goal, GroupGoal):
        return _group_step(goal, loaded.stored, sent, is_own)
    return _tick_step(goal, loaded.stored, knows)


def _tick_step(goal: TickGoal, stored: int | None, knows: Callable[[int], bool]) -> Step:
    if stored == goal.mz_timestamp:
        return Step.HELD
    if stored is not None and not knows(stored):
        return Step.UNKNOWN
    if stored is None or stored < goal.mz_timestamp:
        return Step.PLAN
    return Step.PASSED if goal.repaired else Step.FENCED


def _group_step(goal: GroupGoal, stored: int | None, sent: Sent | None, is_own: Callable[[], bool]) -> Step:
    """An entry of the same time that is not this commit may be the last of several: only a new group finds them all."""
    if stored == goal.planned:
        return Step.PLAN
    if stored == goal.mz_timestamp and sent is not None and is_own():
        return Step.HELD
    return Step.PLAN_AGAIN


def what_to_put(*, has_effect: bool, forced: bool, spans_ticks: bool = False) -> Literal["rows", "fence"] | None:
    """What a plan becomes. Delta commits nothing for a merge without effect, not even its transaction.

    :param has_effect: would the plan change a row, system columns included? Events alone do not mean that it does.
    :param forced: a commit is due even without effect, so that a late commit of an earlier writer is refused.
    :param spans_ticks: the plan has events, and its group has several ticks. They may cancel each other out: a row that
        came with one tick and went with a later one. Only an entry for the group refuses a read between the two.
    """
    if has_effect:
        return "rows"
    return "fence" if forced or spans_ticks else None


def put_counts(version: int, *, is_ours: bool, entries: Collection[int], checkpoints: Collection[int]) -> bool:
    """Is a plan that was put at ``version``, and not refused, part of the log? If not, the answer is unclear.

    Maintenance removes old entries. Whoever has slept since it made its plan finds its slot free again: in a hole,
    where nobody reads. Then the entry that it was planned on is gone, or stands in a hole itself; and above every hole
    there is a checkpoint. A put that a checkpoint overtakes before the log is listed costs a reload.

    :param is_ours: does the entry that stands there now carry the id of the plan?
    :param entries: the versions that are listed after the put.
    :param checkpoints: those of the same listing.
    """
    is_followed = any(checkpoint >= version for checkpoint in checkpoints)
    return is_ours and version in entries and version - 1 in entries and not is_followed


def compaction_stands(inputs: Collection[str], live: Collection[str]) -> bool:
    """May files that were written beside the ticks replace ``inputs``, on the version that has the files ``live``?

    A commit that changes a row of a file replaces the file. So an input that is still there has the rows that were
    read. The compaction is put at the slot of that version; after any answer but "it is there" it is dropped.
    """
    return set(inputs) <= set(live)


def rows_to_carry(read: Mapping[str, V], live: Mapping[str, V]) -> dict[str, V] | None:
    """``compaction_stands`` for a collection with deletion vectors: None if it does not.

    A commit that changes a row of a file leaves the file, and its vector grows. So the compaction can be put beside it,
    if the rows that were taken away since are taken away from the new files, too.

    :param read: the inputs, with their vectors as they were read; a file without one has an empty one.
    :param live: the files of the version that the compaction is put upon, with their vectors.
    :returns: by input, the rows that were read and that later vectors have taken away.
    """
    if not compaction_stands(read, live) or any(len(vector - live[path]) for path, vector in read.items()):
        return None  # a vector that has lost rows is a restore: these rows were not read
    grown = {path: live[path] - vector for path, vector in read.items()}
    return {path: rows for path, rows in grown.items() if len(rows)}
