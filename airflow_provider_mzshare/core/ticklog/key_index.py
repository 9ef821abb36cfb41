"""How an index of a keyed collection gets from one version to the next, as a decision without input, output or clock.

The index says in which file, and in which row of it, each key is. It is scratch: it is named by the version that it
describes, and plans are made with it for that version only. It must never run ahead of what is known: it moves over an
entry after the entry is known to be in the log, one version at a time, or it is built anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Seen:
    """An entry of the log as it was read.

    :param entry_id: a text that no other entry has. None: the entry is not one of ours.
    :param is_whole: the entry, and the files and vectors that it names, could be read.
    """

    version: int
    entry_id: str | None
    is_whole: bool


class Move(Enum):
    """What takes an index over an entry."""

    OWN = "the places of the plan that is this entry"
    MAPPED = "the mapping from old to new places of the compaction that is this entry"
    FOLLOWED = "the entry: rows in files or vectors that it takes away leave, then rows of files that it adds enter"
    REBUILD = "nothing: the rows of the loaded version are read"


def index_move(
    describes: int,
    entry: Seen | None,
    *,
    loaded: int,
    log: Collection[int],
    plans: Mapping[int, str],
    mappings: Mapping[int, str],
) -> Move:
    """Asked until the index describes the version ``loaded``, or has to be rebuilt.

    :param describes: the version of the index.
    :param entry: the one after it. None if there is none, or if it cannot be read.
    :param log: the versions of ``log_upkeep.log_part``, from a listing that was made after the entry was read. In a
        hole that maintenance has made there may be an entry that is no part of the log.
    :param plans: the ids of this app's own plans whose places it knows, by the version where they were put. A merge is
        none of them: who writes its files decides which row is where.
    :param mappings: the same for compactions. Both may name plans whose answer was unclear, or that were refused.
    """
    if entry is None or entry.version != describes + 1 or entry.version > loaded or entry.version not in log:
        return Move.REBUILD
    if entry.entry_id is not None:
        if plans.get(entry.version) == entry.entry_id:
            return Move.OWN
        if mappings.get(entry.version) == entry.entry_id:
            return Move.MAPPED
    return Move.FOLLOWED if entry.is_whole else Move.REBUILD
