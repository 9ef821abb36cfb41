"""The first commit of a generation, by runs that do not know of each other: the one that is there counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_mzshare.core.ids import SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Snapshot
from airflow_provider_mzshare.errors import BadCollection, GroupTooShort, PlanAgain
from airflow_provider_mzshare.storage.writing.dues import Due
from airflow_provider_mzshare.storage.writing.snapshots import SnapshotCommits
from airflow_provider_mzshare.storage.writing.writers import GroupCommits
from tests.support.writers import MEMBER, Log, execute, finish, newest, plan, run_pass, writer

LOG = Log()


def snapshot(name: str, tick: int) -> Snapshot:
    at = LOG.ticks[tick - 1]
    return Snapshot(SnapshotId(name), tick, at.mz_timestamp, at.upper, Position({0: 99}), "7:9:8")


class Run:
    """One run of a backfill, which has taken a snapshot. Its rows are those of its tick."""

    def __init__(self, root: Path, name: str, tick: int) -> None:
        self.commits = writer(SnapshotCommits, Log(), root, job=name)
        self.snapshot, self.group = snapshot(name, tick), TickGroup((LOG.ticks[tick - 1],))
        self.commits.snapshot = self.snapshot
        self.due = plan(self.commits, self.group, MEMBER)

    def commit(self) -> object:
        assert isinstance(self.due, Due)
        files = run_pass(self.group, replace(self.due, plan=replace(self.due.plan, stop_on_error=False)))
        files.files["errors"] = []  # the log has bad records, too, which no snapshot may have
        return self.commits.commit(self.group, self.due, files, time.time())

    def landed(self) -> Landed | None:
        return self.commits.landed(MEMBER)


def ticks(root: Path) -> Sequence[int]:
    return sorted(set(newest(root, MEMBER.data).column("_mz_tick").to_pylist()))


def test_a_run_finds_what_it_has_committed_itself(tmp_path: Path) -> None:
    run = Run(tmp_path, "s-1", 3)
    assert run.landed() is None
    assert isinstance(run.commit(), Done)
    landed = run.landed()
    assert landed is not None
    assert landed.snapshot == run.snapshot
    assert landed.done.rows == len(newest(tmp_path, MEMBER.data))
    assert [(one.collection_id, one.tick) for one in landed.done.written] == [(MEMBER.errors, 3), (MEMBER.data, 3)]


@pytest.mark.parametrize("tick", [3, 5])
def test_of_two_runs_the_first_commit_counts_whoever_is_late(tmp_path: Path, tick: int) -> None:
    """Also if both have taken theirs after the same tick."""
    zombie, successor = Run(tmp_path, "s-1", 3), Run(tmp_path, "s-2", tick)
    assert isinstance(zombie.commit(), Done)
    with pytest.raises(PlanAgain):
        successor.commit()
    landed = successor.landed()
    assert landed is not None
    assert landed.snapshot == zombie.snapshot
    assert ticks(tmp_path) == [3]


@pytest.mark.parametrize("tick", [3, 5])
def test_who_is_late_changes_nothing(tmp_path: Path, tick: int) -> None:
    zombie, successor = Run(tmp_path, "s-1", 3), Run(tmp_path, "s-2", tick)
    assert isinstance(successor.commit(), Done)
    with pytest.raises((PlanAgain, GroupTooShort)):
        zombie.commit()
    landed = zombie.landed()
    assert landed is not None
    assert landed.snapshot == successor.snapshot
    assert ticks(tmp_path) == [tick]


def test_the_ticks_go_on_after_it(tmp_path: Path) -> None:
    run = Run(tmp_path, "s-1", 3)
    run.commit()
    log = Log()
    landed = run.landed()
    assert landed is not None
    log.follow(landed.done)
    assert isinstance(execute(writer(GroupCommits, log, tmp_path, job="s-2"), LOG.group(4, 6), MEMBER), Done)
    assert ticks(tmp_path) == [3, 4, 5, 6]
    assert run.landed() == landed


def test_a_collection_that_has_ticks_and_no_snapshot_is_refused(tmp_path: Path) -> None:
    execute(writer(GroupCommits, Log(), tmp_path), LOG.group(1, 2), MEMBER)
    with pytest.raises(BadCollection, match="it has ticks, and no rows of a snapshot before them"):
        writer(SnapshotCommits, Log(), tmp_path).landed(MEMBER)


def test_a_row_that_cannot_be_decoded_stalls_the_table(tmp_path: Path) -> None:
    run = Run(tmp_path, "s-1", 3)
    assert isinstance(run.due, Due)
    outcome = finish(run.commits, run.group, run.due)
    assert isinstance(outcome, Left)
    assert outcome.reason.startswith("a row of its snapshot cannot be decoded: ")
    assert outcome.reason.endswith(
        "Name the column in TEXT COLUMNS, or correct the row upstream; then RESNAPSHOT or RESUME"
    )
    assert run.landed() is None
