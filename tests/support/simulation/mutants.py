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
    # Keyed collections.
    PLAN_SENT_AGAIN = "a plan that was refused is sent again at the next version"
    CLIENT_SENDS_AGAIN = "the client of the log sends what was refused again by itself, unless a tick came between"
    INSERTS_APPENDED = "a plan that only adds rows is appended, whatever the newest version is"
    UNCLEAR_MEANS_FAILED = "after an unclear answer the plan is made anew without a look at the stored tick"
    REPLANNED_ON_ANY_TICK = "a group that was refused is planned anew on whatever tick is there by then"
    PART_APPLIED_AGAIN = "a group is applied to a keyed collection that holds part of it"
    FOLDED_BY_PLACE = "the events of a group are folded by place alone"
    PLANNED_ON_OLDER = "the rows are read at an older version than the one that is compared and put upon"
    STALE_COMPACTION = "a compaction is put on the newest version without a look at its files"
    KEYED_NOT_FORCED = "the forced commit to a keyed collection is left out when it has no events"
    NO_FENCE_WITHOUT_EFFECT = "the forced commit to a keyed collection is left out when its events change no row"
    CANCELLED_OUT_UNMARKED = "a group whose ticks cancel each other out gets no commit, and is read inside"
    # Cutover.
    INEXACT_CUTOVER = "a table is cut over where its position has reached the tick's lower on some partition only"
    ARMED_BEFORE_HISTORY = "a cutover is armed before the history is complete"
    JOINED_AT_EMPTY = "a table that joins goes on at the empty ticks that it has passed over"
    # Reads.
    SINCE_NOT_MOVED = "a group leaves since at its first tick"
    GROUPS_READ_INSIDE = "a read as of a time inside a group is answered"
    SWAP_CHANGES_ANSWERS = "after a swap the new generation answers for the time before it"
    COMMITTED_TICKS_ONLY = "a read looks at committed ticks only, while a backfill is ahead"


KEYED = frozenset(
    {
        Mutant.PLAN_SENT_AGAIN,
        Mutant.CLIENT_SENDS_AGAIN,
        Mutant.INSERTS_APPENDED,
        Mutant.UNCLEAR_MEANS_FAILED,
        Mutant.REPLANNED_ON_ANY_TICK,
        Mutant.PART_APPLIED_AGAIN,
        Mutant.FOLDED_BY_PLACE,
        Mutant.PLANNED_ON_OLDER,
        Mutant.STALE_COMPACTION,
        Mutant.KEYED_NOT_FORCED,
        Mutant.NO_FENCE_WITHOUT_EFFECT,
        Mutant.CANCELLED_OUT_UNMARKED,
    }
)
"""They show only in a world with keyed tables."""
