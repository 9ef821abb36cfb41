"""Rules that can be left out, one at a time, to show that the simulation notices."""

from __future__ import annotations

from enum import Enum


class Violation(AssertionError):
    """What must never be true, was."""


class Mutant(Enum):
    NONE = "none"
    # The tick log.
    CONFLICT_MEANS_PRESENT = "a conflict, here with the app's own last commit, is taken for 'it is there'"
    NO_STORED_VERSION = "the stored version is not compared before a commit"
    EVERY_MEMBER_MOVES = "the tick's commit moves members that left, too"
    NO_FENCE_AT_MINT = "a zombie may mint what it planned long ago"
    DEAD_IS_NOT_FENCED = "a process that is presumed dead, and lives, goes on as if nothing had happened"
    NEW_END_ON_REPLAY = "a pending tick is finished with new end offsets"
    FIRST_COMMIT_NOT_FORCED = "a writer's first commit is left out when it has no rows"
    NO_ROOM_LEAVES = "a table that finds no room leaves the source"
    NO_ROOM_TAKES_FILES = "the files of a commit that found no room are removed without a look whether it landed"
    FOUND_COUNTS_AS_OWN = "a commit that another writer made counts as this writer's first"
    # Backfills.
    BOUNDARY_ROW_TWICE = "a backfill takes its position for the last offset read, and reads it: offset <= position"
    NO_AFTER_FILTER = "a group's commit holds the ticks that the collection has already"
    STORED_AHEAD_IGNORED = "a backfill does not look at a stored version ahead of the catalog"
    NO_COMPARE_AT_COMMIT = "a group is committed without comparing the stored version with the planned one"
    HEAL_UNDER_NEW_APP_ID = "a stalled table is healed under another application id"
    DONE_WITHOUT_SEAL = "a group that the data holds is done, and the errors stay open for a late commit"
    TICKS_AFTER_LOAD = "a backfill executes ticks that were minted after it looked at its tables"
    FOLLOW_WITHOUT_LEASE = "a backfill moves its tables without holding its lease"
    MERGED_AT_ONE_PLACE = "backfills that are merged go on where the foremost of their tables stands"
    MERGED_WITHOUT_HEALING = "a backfill that is merged forgets which of its tables heal"
    # Specs.
    SPEC_OF_MINTED_CHANGES = "a spec that is changed while a tick is pending is valid for that tick"
    NEWEST_SPEC = "whoever executes a tick takes the newest spec"
    GROUP_ACROSS_SPECS = "a group goes on where the spec changes"
    READ_WITH_NEWEST_SPEC = "a read as of a tick takes the newest spec"
    # Cutover.
    INEXACT_CUTOVER = "a table is cut over where its position has reached the tick's lower on some partition only"
    ARMED_BEFORE_HISTORY = "a cutover is armed before the history is complete"
    # Reads.
    SINCE_NOT_MOVED = "a group leaves since at its first tick"
    GROUPS_READ_INSIDE = "a read as of a time inside a group is answered"
    SWAP_CHANGES_ANSWERS = "after a swap the new generation answers for the time before it"
    COMMITTED_TICKS_ONLY = "a read looks at committed ticks only, while a backfill is ahead"
