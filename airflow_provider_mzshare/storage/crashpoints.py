"""Named places where a test may kill, hold or fail an app: ``MZSHARE_CRASH=label[@nth][:kill|hold=FILE|raise]``.

Unset, a crash point costs one dictionary look-up. The labels are listed here so that a test can hold that every one of
them is tried.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

LABELS = (
    "offsets_known",
    "tick_minted",
    "files_written",
    "between_commits",
    "all_committed",
    "tick_committed",
)
"""What an ingestion app passes, in this order."""

BACKFILL_LABELS = (
    "backfill_launched",
    "backfill_reading",
    "files_written",
    "between_commits",
    "all_committed",
    "history_done",
    "following",
    "converging",
    "fenced",
)
"""What a backfill app passes: the lease taken, a group planned, its files written, some and all of its collections
committed, the history complete; then a group after the history, one of a table that converges, and its end."""

SNAPSHOT_LABELS = ("snapshot_taken", "snapshot_read", "snapshot_committed", "snapshot_noted")
"""What a backfill of tables that begin with a snapshot passes before all ticks: the snapshot is in the catalog; all of
it is read; it is committed; and the catalog knows."""

VECTOR_LABELS = ("vectors_written", "entry_put")
KEYED_LABELS = ("keyed_planned", *VECTOR_LABELS, "keyed_put")
"""What a commit to a table with keys passes, in either app: planned on a version; if the table has vectors, its files
written, and its entry put but not yet known to count; and put behind the version."""

UNINDEXED_LABELS = ("unindexed", "left_unindexed")
"""What an ingestion app passes when a member's index is not there: the others have the tick; the member has left."""

COMPACTION_LABELS = ("compaction_written", "compaction_put")
"""What a compaction of a table with keys passes: its files written, and its entry known to be there."""

JOURNAL_LABELS = ("segment_begun", "segment_written", "segment_flushed", "announced")
"""What a writer of a journal passes: its file made; messages in it; durable; announced, and not acknowledged yet."""

RECORDER_LABELS = ("recorder_claimed", "feed_opened", *JOURNAL_LABELS, "boundary_announced", "confirmed")
"""What a recorder passes beside a writer's: the journal's partition claimed, the upstream's stream begun, a boundary
announced that no message came with, and the upstream told what it may forget."""

VARIABLE = "MZSHARE_CRASH"

_passed: Counter[str] = Counter()


class Crashed(Exception):
    """Raised by the action ``raise``."""


def crashpoint(label: str) -> None:
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    place, _, action = wanted.partition(":")
    name, _, nth = place.partition("@")
    if name != label:
        return
    _passed[label] += 1
    if _passed[label] != int(nth or 1):
        return
    _act(label, action or "kill")


def _act(label: str, action: str) -> None:
    if action == "kill":
        # The whole process group, so that the JVM does not outlive its driver by a heartbeat.
        leads = os.getpgrp() == os.getpid()
        os.killpg(os.getpgrp(), signal.SIGKILL) if leads else os.kill(os.getpid(), signal.SIGKILL)
    elif action.startswith("hold="):
        # Its other threads go on: whoever stops the process can see to it that none of them holds the catalog's lock.
        told = Path(action.removeprefix("hold="))
        told.touch()
        while told.exists():
            time.sleep(0.02)
    elif action == "raise":
        raise Crashed(label)
    else:
        raise ValueError(f"{VARIABLE}: unknown action {action!r}")
