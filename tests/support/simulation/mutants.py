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
    FOLLOW_WITHOUT_LEASE = "a backfill moves its tables without holding its lease"
    PLANNED_WITHOUT_LEASE = (
        "a group is planned upon whatever a collection holds, without a look at the lease after that"
    )
    PLANNED_FOR_OTHERS = "after that look at the lease, nobody asks whether the tables still belong to the backfill"
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
    # Error rows that only the rows of a keyed collection can tell.
    REFUSED_ON_OLDER = "they are found on the rows of an older version than the one that holds the tick before"
    REFUSED_ON_ANY_STATE = "they are found on whatever rows there are, though these have the tick already"
    REFUSED_BY_PLACE = "the events of a group are followed by place alone"
    REFUSED_NOT_COMPARED = "data is put whatever error rows another attempt has committed"
    ERRORS_NOT_FORCED = "a tick with kept values, and without error rows, gets no commit to the errors"
    # Collections with deletion vectors: what is put.
    FILES_AFTER_ENTRY = "files are written after the entry that names them"
    CHANGES_WITHOUT_INSERTS = "the file of changes leaves out the rows that are new"
    PUT_OVERWRITES = "an entry is put, whether or not there is one"
    NOT_OURS_COUNTS = "a put counts, whoever's entry stands at its version"
    GONE_BASE_COUNTS = "a put counts although the entry that it was planned on is not listed"
    BELOW_CHECKPOINT_COUNTS = "a put counts although a checkpoint stands at or above its version"
    HOLE_COUNTS = "a put counts wherever it has landed"
    UNCLEAR_TAKES_FILES = "the files of a put are removed after an unclear answer"
    # Their index.
    INDEX_OF_ANY_VERSION = "the index is used for whatever version is loaded"
    INDEX_BEFORE_COMMIT = "the index changes before the commit is known"
    INDEX_JUMPS = "the index takes the newest entry for the next one"
    VECTORS_NOT_FOLLOWED = "the index follows files, and no vectors"
    NEW_FILES_NOT_FOLLOWED = "the index follows what an entry takes away, and no files that it adds"
    COMPACTIONS_SKIPPED = "the index takes it that an entry without a tick moves no row"
    HOLES_ARE_FOLLOWED = "the index follows an entry that stands in a hole"
    LISTED_BEFORE_READ = "the log is listed before its entries are read"
    MAPPED_BY_VERSION = "a compaction's mapping is applied to whatever entry stands at its version"
    MAPPED_UNCLEAR = "a compaction's mapping is applied after an unclear answer"
    # Indexes that come late.
    UNINDEXED_MOVES = "a member that leaves because its index is not there counts as having got the tick"
    ADMITTED_WITHOUT_INDEX = "a table is made a member although the app does not have its index"
    # Their compaction.
    LATER_VECTORS_LOST = "a compaction does not carry over the rows that were taken away since its inputs were read"
    OLD_OUTPUTS_PUT = "a compaction is put however old its files are"
    # Their log and files.
    HOLES_ARE_LOG = "all entries that are listed are part of the log"
    REMOVED_IN_ANY_ORDER = "log entries are removed in any order"
    CHECKPOINTS_GO_LAST = "older checkpoints are removed after the log entries"
    REMOVED_WITHOUT_CHECKPOINT = "log entries are removed up to the oldest version that is kept"
    REMOVED_BEFORE_SINCE = "log entries are removed below the newest checkpoint, whatever since has passed"
    NO_GRACE = "what since has passed is removed at once"
    VECTORS_UNTRACKED = "vectors are taken for files that no entry names"
    CHANGES_UNTRACKED = "change files are taken for files that no entry names"
    DEAD_VECTORS_KEPT = "vectors that no version has any more stay for ever"
    DEAD_CHANGES_KEPT = "change files stay for ever"
    UNNAMED_OF_ANY_AGE = "files that no entry names are removed however young they are"
    UNNAMED_BY_AGE_ALONE = "files that no entry names are removed when they are old, though the log has not gone on"
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
VECTORS = frozenset(
    {
        Mutant.FILES_AFTER_ENTRY,
        Mutant.CHANGES_WITHOUT_INSERTS,
        Mutant.PUT_OVERWRITES,
        Mutant.NOT_OURS_COUNTS,
        Mutant.GONE_BASE_COUNTS,
        Mutant.BELOW_CHECKPOINT_COUNTS,
        Mutant.HOLE_COUNTS,
        Mutant.UNCLEAR_TAKES_FILES,
        Mutant.INDEX_OF_ANY_VERSION,
        Mutant.INDEX_BEFORE_COMMIT,
        Mutant.INDEX_JUMPS,
        Mutant.VECTORS_NOT_FOLLOWED,
        Mutant.NEW_FILES_NOT_FOLLOWED,
        Mutant.COMPACTIONS_SKIPPED,
        Mutant.HOLES_ARE_FOLLOWED,
        Mutant.LISTED_BEFORE_READ,
        Mutant.MAPPED_BY_VERSION,
        Mutant.MAPPED_UNCLEAR,
        Mutant.LATER_VECTORS_LOST,
        Mutant.OLD_OUTPUTS_PUT,
        Mutant.HOLES_ARE_LOG,
        Mutant.REMOVED_IN_ANY_ORDER,
        Mutant.CHECKPOINTS_GO_LAST,
        Mutant.REMOVED_WITHOUT_CHECKPOINT,
        Mutant.REMOVED_BEFORE_SINCE,
        Mutant.NO_GRACE,
        Mutant.VECTORS_UNTRACKED,
        Mutant.CHANGES_UNTRACKED,
        Mutant.DEAD_VECTORS_KEPT,
        Mutant.DEAD_CHANGES_KEPT,
        Mutant.UNNAMED_OF_ANY_AGE,
        Mutant.UNNAMED_BY_AGE_ALONE,
    }
)
"""They show only in a world whose keyed tables have deletion vectors."""
KEEPING = frozenset(
    {
        Mutant.REFUSED_ON_OLDER,
        Mutant.REFUSED_ON_ANY_STATE,
        Mutant.REFUSED_BY_PLACE,
        Mutant.REFUSED_NOT_COMPARED,
        Mutant.ERRORS_NOT_FORCED,
    }
)
"""They show only in a world whose keyed tables keep values of rows."""
LATE = frozenset(
    {
        Mutant.UNINDEXED_MOVES,
        Mutant.ADMITTED_WITHOUT_INDEX,
    }
)
"""They show only in a world in which, besides, indexes come late."""
