"""What belongs to the log of a keyed collection, and what maintenance may remove, without input, output or clock.

A writer may sleep between its last look and its put for as long as it likes. So what is removed must leave a trace that
the sleeper finds: its slot is taken, or the hole in which its entry lands lies below every checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import NamedTuple


class LogRemovals(NamedTuple):
    """Versions, in the order of their removal: all checkpoints before the first entry. Each is removed by itself, and
    who fails at one ends there."""

    checkpoints: tuple[int, ...]
    entries: tuple[int, ...]


def log_removals(
    entries: Collection[int],
    checkpoints: Collection[int],
    *,
    keep_from: int,
    is_usable: Callable[[int], bool] = lambda checkpoint: True,
) -> LogRemovals:
    """What may go of a log: all below the newest checkpoint from which version ``keep_from`` can be loaded.

    Entries go oldest first, so that an entry is in a hole if one before it is gone. Older checkpoints go before them,
    so that no checkpoint is left from which a hole could be read: see ``log_part``.

    :param keep_from: the oldest version that may still be read.
    :param is_usable: is this checkpoint whole, and do readers find it?
    """
    base = next((v for v in sorted(checkpoints, reverse=True) if v <= keep_from and is_usable(v)), 0)
    older = sorted(v for v in checkpoints if v < base)
    return LogRemovals(tuple(older), tuple(sorted(v for v in entries if v < base)))


def log_part(entries: Collection[int], checkpoints: Collection[int]) -> frozenset[int]:
    """The listed entries that are part of the log; others stand in holes that ``log_removals`` has made.

    As long as entry 0 is there, nothing was removed. After that the oldest checkpoint stands above all holes, unless
    its writer has slept until it was below one: then its own entry is gone, or another sleeper's stands there. So only
    a checkpoint whose entry is listed counts, and only what lies above it. An entry in a hole may touch the ones above
    it, so a gap is not always there to tell it; what lies below one is no part.

    :param entries: from a listing that was made after the entries in question were read: one that is read later may
        stand in a hole that was made since.
    """
    base = -1 if 0 in entries else min((version for version in checkpoints if version in entries), default=None)
    if base is None:
        return frozenset()
    above = sorted((version for version in entries if version > base), reverse=True)
    return frozenset(version for place, version in enumerate(above) if version == above[0] - place)


def may_go_unnamed(age: timedelta, *, min_age: timedelta, newest_when_listed: int, newest: int) -> bool:
    """May a file be removed that no entry of the log has named, up to ``newest``?

    Whoever wrote it may sleep, and name it when it wakes up. It has loaded the version that it puts upon before the
    file was ``min_age`` old (writers look at the age of their files when they load), so no version after the newest of
    that time: once the log has gone on, its only slot is taken.

    :param age: when the file was listed.
    :param newest_when_listed: the newest version, looked up after the file was listed.
    :param newest: the newest version now. The entries are looked through after it is known: the sleeper itself may
        have taken its slot since the file was listed.
    """
    return age >= min_age and newest > newest_when_listed
