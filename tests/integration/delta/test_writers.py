"""Groups of ticks on real collections: every row once, whoever else writes and whatever answer is lost."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Done, Left
from airflow_provider_mzshare.errors import BadCollection, CatalogBehind, CommitUnclear, GroupTooShort, PlanAgain
from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections import commit as commits
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.fanout.results import MemberResult
from airflow_provider_mzshare.storage.writing.dues import Due
from airflow_provider_mzshare.storage.writing.writers import GroupCommits, TickCommits
from tests.support.writers import (
    MEMBER,
    Log,
    batch_of_range,
    check,
    execute,
    finish,
    newest,
    plan,
    run_pass,
    spans,
    writer,
)

WRITE = DeltaTable.create_write_transaction


@pytest.fixture
def log() -> Log:
    return Log()


def on_write(monkeypatch: pytest.MonkeyPatch, nth: int, action: Callable[[Callable[[], None]], None]) -> None:
    """Let ``action`` stand for the nth write from now on; it is given the write itself."""
    calls = []

    def write(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        calls.append(1)
        if len(calls) == nth:
            monkeypatch.setattr(DeltaTable, "create_write_transaction", WRITE)
            action(lambda: WRITE(table, *args, **kwargs))
        else:
            WRITE(table, *args, **kwargs)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", write)


def planned(backfill: GroupCommits, log: Log, first: int, last: int) -> Due:
    due = plan(backfill, log.group(first, last), MEMBER)
    assert isinstance(due, Due)
    return due


# ── in peace ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_group_is_one_commit_per_collection_that_says_which_ticks_it_carries(tmp_path: Path, log: Log) -> None:
    backfill = writer(GroupCommits, log, tmp_path)
    done = log.follow(execute(backfill, log.group(1, 4), MEMBER))
    assert spans(done.written, log) == {"data": [(1, 4)], "errors": [(1, 4)]}
    [commit] = audit.transactions(Collection.open(str(tmp_path), MEMBER.data))
    noted = {name: commit.metadata[name] for name in ("mz_first_tick", "mz_tick", "mz_lower", "mz_upper", "mz_rows")}
    assert noted == {
        "mz_first_tick": "1",
        "mz_tick": "4",
        "mz_lower": "{}",
        "mz_upper": Position({0: 16, 1: 6}).to_json(),
        "mz_rows": str(done.rows),
    }
    assert commit.mz_timestamp == log.ticks[3].mz_timestamp
    log.follow(execute(backfill, log.group(5, 10), MEMBER))
    check(tmp_path, log, 10, MEMBER)


def test_whoever_finds_a_tick_learns_what_was_read_for_it(tmp_path: Path, log: Log) -> None:
    """The writer died before the catalog heard of the tick: its successor reads nothing, and counts the same."""
    group = log.group(1, 1)
    batch = batch_of_range(group.lower, group.upper)
    read = (batch.num_rows, sum(len(value) for value in batch.column("value").to_pylist()))
    execute(writer(TickCommits, log, tmp_path), group, MEMBER)
    again = TickGroup((replace(group.last, attempts=2),))
    found = plan(writer(TickCommits, log, tmp_path, "job-2"), again, MEMBER)
    assert isinstance(found, Done)
    assert {(commit.messages, commit.bytes) for commit in found.written} == {read}
    assert read[0] > 1


def test_only_the_first_group_of_a_writer_is_committed_without_rows(tmp_path: Path) -> None:
    log = Log(tuple(replace(tick, lower=Position(), upper=Position()) for tick in Log().ticks))
    backfill = writer(GroupCommits, log, tmp_path)
    assert spans(log.follow(execute(backfill, log.group(1, 2), MEMBER)).written, log) == {
        "data": [(1, 2)],
        "errors": [(1, 2)],
    }
    assert log.follow(execute(backfill, log.group(3, 4), MEMBER)) == Done()
    other = writer(GroupCommits, log, tmp_path, "job-2")
    assert spans(log.follow(execute(other, log.group(5, 6), MEMBER)).written, log)["data"] == [(5, 6)]


def test_a_tick_and_a_group_take_turns_on_one_table(tmp_path: Path, log: Log) -> None:
    """A table that fails, is brought up by a backfill and joins again."""
    app, backfill = writer(TickCommits, log, tmp_path), writer(GroupCommits, log, tmp_path, "job-2")
    for tick in (1, 2):
        done = log.follow(execute(app, log.group(tick, tick), MEMBER))
        assert spans(done.written, log) == {"data": [(tick, tick)], "errors": [(tick, tick)]}
    log.follow(execute(backfill, log.group(3, 7), MEMBER))
    log.follow(execute(app, log.group(8, 8), MEMBER))
    check(tmp_path, log, 8, MEMBER)


# ── after a crash ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_dead_writer_left_inside_a_group_is_left_out_and_reported(tmp_path: Path, log: Log) -> None:
    dead = writer(GroupCommits, log, tmp_path)
    execute(dead, log.group(1, 2), MEMBER)
    execute(dead, log.group(3, 4), MEMBER)
    done = log.follow(execute(writer(GroupCommits, log, tmp_path, "job-2"), log.group(1, 7), MEMBER))
    assert spans(done.written, log) == {"data": [(1, 2), (3, 4), (5, 7)], "errors": [(1, 2), (3, 4), (5, 7)]}
    check(tmp_path, log, 7, MEMBER)


def test_what_the_catalog_knows_already_is_not_reported_again(tmp_path: Path, log: Log) -> None:
    backfill = writer(GroupCommits, log, tmp_path)
    log.follow(execute(backfill, log.group(1, 2), MEMBER))
    execute(backfill, log.group(3, 4), MEMBER)
    done = log.follow(execute(writer(GroupCommits, log, tmp_path, "job-2"), log.group(3, 5), MEMBER))
    assert spans(done.written, log) == {"data": [(3, 4), (5, 5)], "errors": [(3, 4), (5, 5)]}
    check(tmp_path, log, 5, MEMBER)


def test_a_group_that_is_there_needs_no_pass(tmp_path: Path, log: Log) -> None:
    execute(writer(GroupCommits, log, tmp_path), log.group(1, 4), MEMBER)
    found = plan(writer(GroupCommits, log, tmp_path, "job-2"), log.group(1, 4), MEMBER)
    assert isinstance(found, Done)
    assert found.rows > 0
    assert found.errors > 0
    log.follow(found)
    check(tmp_path, log, 4, MEMBER)


def test_errors_that_were_committed_before_the_crash_are_not_written_again(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    def fill_the_disk(write: Callable[[], None]) -> None:
        monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
        fail()

    monkeypatch.setattr(commits, "FIRST_PAUSE_S", 0.0001)
    on_write(monkeypatch, 2, fill_the_disk)
    with pytest.raises(CommitUnclear):
        execute(writer(GroupCommits, log, tmp_path), log.group(1, 3), MEMBER)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", WRITE)
    done = log.follow(execute(writer(GroupCommits, log, tmp_path, "job-2"), log.group(1, 5), MEMBER))
    assert spans(done.written, log) == {"data": [(1, 5)], "errors": [(1, 3), (4, 5)]}
    check(tmp_path, log, 5, MEMBER)


def test_errors_that_have_no_rows_are_as_far_as_their_data(tmp_path: Path, log: Log) -> None:
    """Without rows there is no commit: the errors' own newest tick says less than the data's."""
    member = replace(MEMBER, spec=TableSpec(reference="t", format="bytes"))
    dead = writer(GroupCommits, log, tmp_path)
    execute(dead, log.group(1, 2), member)
    execute(dead, log.group(3, 4), member)
    done = log.follow(execute(writer(GroupCommits, log, tmp_path, "job-2"), log.group(1, 6), member))
    assert spans(done.written, log) == {"data": [(1, 2), (3, 4), (5, 6)], "errors": [(1, 2), (5, 6)]}


def test_a_lost_answer_is_no_second_commit(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(write: Callable[[], None]) -> None:
        write()
        raise OSError("connection reset by peer")

    on_write(monkeypatch, 2, lose)
    done = log.follow(execute(writer(GroupCommits, log, tmp_path), log.group(1, 4), MEMBER))
    assert spans(done.written, log) == {"data": [(1, 4)], "errors": [(1, 4)]}
    check(tmp_path, log, 4, MEMBER)


# ── beside another writer ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("steps", [[(1, 3)], [(1, 5)], [(1, 2), (3, 5)]], ids=["inside", "the same", "in two steps"])
def test_a_group_that_was_planned_on_less_is_planned_again(
    tmp_path: Path, log: Log, steps: list[tuple[int, int]]
) -> None:
    ours, other = writer(GroupCommits, log, tmp_path), writer(GroupCommits, log, tmp_path, "job-2")
    group = log.group(1, 5)
    due = planned(ours, log, 1, 5)
    for first, last in steps:
        execute(other, log.group(first, last), MEMBER)
    with pytest.raises(PlanAgain) as caught:
        finish(ours, group, due)
    assert (caught.value.collection, caught.value.planned) == (MEMBER.errors, None)
    log.follow(execute(ours, group, MEMBER))
    check(tmp_path, log, 5, MEMBER)


def test_a_writer_between_compare_and_write_is_met_by_delta(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = writer(GroupCommits, log, tmp_path), writer(GroupCommits, log, tmp_path, "job-2")
    log.follow(execute(ours, log.group(1, 1), MEMBER))

    def late(write: Callable[[], None]) -> None:
        execute(other, log.group(2, 4), MEMBER)
        write()

    on_write(monkeypatch, 1, late)
    with pytest.raises(PlanAgain):
        execute(ours, log.group(2, 3), MEMBER)
    with pytest.raises(GroupTooShort) as caught:
        execute(ours, log.group(2, 3), MEMBER)
    assert caught.value.tick == 4
    log.follow(execute(ours, log.group(2, 6), MEMBER))
    check(tmp_path, log, 6, MEMBER)


def test_a_zombie_finds_the_table_beyond_its_group(tmp_path: Path, log: Log) -> None:
    """The table was cut over meanwhile: its ticks are written by the ingestion app now."""
    zombie, backfill = writer(GroupCommits, log, tmp_path), writer(GroupCommits, log, tmp_path, "job-2")
    app = writer(TickCommits, log, tmp_path, "job-3")
    due = planned(zombie, log, 1, 3)
    log.follow(execute(backfill, log.group(1, 3), MEMBER))
    log.follow(execute(app, log.group(4, 4), MEMBER))
    with pytest.raises(PlanAgain):
        finish(zombie, log.group(1, 3), due)
    with pytest.raises(GroupTooShort):
        execute(zombie, log.group(1, 3), MEMBER)
    check(tmp_path, log, 4, MEMBER)


@pytest.mark.parametrize("seed", range(12))
def test_writers_in_any_order_with_any_groups_leave_every_row_once(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Crashes, lost answers and other writers anywhere, also between two commits of a table."""
    monkeypatch.setattr(commits, "FIRST_PAUSE_S", 0.0001)
    chance = random.Random(seed)
    writers = [writer(GroupCommits, log, tmp_path, f"job-{n}") for n in range(3)]
    met: Counter[str] = Counter()

    def write(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        what = chance.choices(["in peace", "beside", "refused", "unanswered"], [6, 3, 1, 1])[0]
        met[what] += 1
        monkeypatch.setattr(DeltaTable, "create_write_transaction", WRITE)
        if what == "beside":
            one_group(chance.choice([one for one in writers if one is not running[0]]), log, chance, met)
        monkeypatch.setattr(DeltaTable, "create_write_transaction", write)
        if what != "refused":
            WRITE(table, *args, **kwargs)
        if what in ("refused", "unanswered"):
            raise OSError(what)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", write)
    for _ in range(300):
        if log.next_tick > len(log.ticks):
            break
        if chance.random() < 0.2:
            writers[chance.randrange(3)] = writer(GroupCommits, log, tmp_path, f"job-{chance.random()}")
        running = [chance.choice(writers)]
        one_group(running[0], log, chance, met)
    check(tmp_path, log, len(log.ticks), MEMBER)
    assert met["in peace"], met


def one_group(backfill: GroupCommits, log: Log, chance: random.Random, met: Counter[str]) -> None:
    """What a backfill does with a group, up to a crash before it is noted."""
    first = log.next_tick
    if first > len(log.ticks):
        return
    try:
        outcome = execute(backfill, log.group(first, chance.randint(first, len(log.ticks))), MEMBER)
    except (PlanAgain, GroupTooShort, CommitUnclear) as error:
        met[type(error).__name__] += 1
        return
    if chance.random() < 0.7 and log.next_tick == first:
        log.follow(outcome)
    else:
        met["crashed"] += 1


# ── a log that does not fit ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lost", [2, 5, 8], ids=["before", "inside", "after"])
def test_a_tick_that_the_catalog_does_not_know_stops_the_source(tmp_path: Path, log: Log, lost: int) -> None:
    """The catalog was restored from a copy, and has minted other ticks since."""
    execute(writer(GroupCommits, log, tmp_path), log.group(1, lost), MEMBER)
    restored = Log(tuple(replace(tick, mz_timestamp=tick.mz_timestamp + 1) for tick in log.ticks))
    with pytest.raises(CatalogBehind) as caught:
        execute(writer(GroupCommits, restored, tmp_path, "job-2"), restored.group(4, 6), MEMBER)
    assert caught.value.stored == log.ticks[lost - 1].mz_timestamp


def test_a_folder_that_is_gone_is_not_begun_anew(tmp_path: Path, log: Log) -> None:
    log.follow(execute(writer(GroupCommits, log, tmp_path), log.group(1, 2), MEMBER))
    shutil.rmtree(tmp_path / MEMBER.data)
    with pytest.raises(BadCollection):
        execute(writer(GroupCommits, log, tmp_path, "job-2"), log.group(3, 4), MEMBER)
    assert not (tmp_path / MEMBER.data).exists()


def test_a_table_that_came_since_the_log_was_checked_is_judged_by_what_the_catalog_knows_now(
    tmp_path: Path, log: Log
) -> None:
    app = writer(TickCommits, log, tmp_path, "job-2")
    app.check_log()
    log.follow(execute(writer(GroupCommits, log, tmp_path), log.group(1, 3), MEMBER))
    shutil.rmtree(tmp_path / MEMBER.data)
    with pytest.raises(BadCollection):
        execute(app, log.group(4, 4), MEMBER)
    assert not (tmp_path / MEMBER.data).exists()


# ── tables that stop ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_that_stops_writes_nothing_of_the_group_and_says_where(tmp_path: Path, log: Log) -> None:
    member = replace(MEMBER, spec=MEMBER.spec.model_copy(update={"on_decode_error": "stop"}))
    backfill = writer(GroupCommits, log, tmp_path)
    assert isinstance(execute(backfill, log.group(1, 1), member), Done)
    left = execute(backfill, log.group(1, 4), member)
    assert isinstance(left, Left)
    assert left.reason.startswith("partition 0, offset 4 cannot be decoded")
    assert Collection.open(str(tmp_path), member.data).stored_version() == log.ticks[0].mz_timestamp


def test_a_table_that_failed_and_comes_back_is_committed_to_even_without_rows(tmp_path: Path, log: Log) -> None:
    """Somebody else may have written it meanwhile, and be late with one more commit."""
    app = writer(TickCommits, log, tmp_path)
    log.follow(execute(app, log.group(1, 1), MEMBER))
    assert planned_by_app(app, log, 2).forced == frozenset()
    # It was planned and not committed: it failed.
    assert planned_by_app(app, log, 2).forced == {MEMBER.data, MEMBER.errors}


def planned_by_app(app: TickCommits, log: Log, tick: int) -> Due:
    due = plan(app, log.group(tick, tick), MEMBER)
    assert isinstance(due, Due)
    return due


# ── a topic that is compacted between two reads ───────────────────────────────────────────────────────────────────────


def after_compaction(group: TickGroup, due: Due) -> MemberResult:
    """What a pass finds once the records that cannot be decoded have gone upstream."""
    found = run_pass(group, due)
    return replace(found, files={**found.files, "errors": []})


def test_errors_that_one_is_late_with_never_appear_behind_a_group_that_was_found(tmp_path: Path, log: Log) -> None:
    group, first = log.group(3, 4), writer(GroupCommits, log, tmp_path)
    log.follow(execute(first, log.group(1, 2), MEMBER))
    late = writer(GroupCommits, log, tmp_path, "job-2")
    with_errors = plan(late, group, MEMBER)
    without = plan(first, group, MEMBER)
    assert isinstance(with_errors, Due)
    assert isinstance(without, Due)
    first.commit(group, without, after_compaction(group, without), time.time())
    found = plan(writer(GroupCommits, log, tmp_path, "job-3"), group, MEMBER)
    assert isinstance(found, Done)
    assert (spans(found.written, log), found.errors) == ({"data": [(3, 4)], "errors": [(4, 4)]}, 0)
    before = newest(tmp_path, MEMBER.errors).num_rows
    with pytest.raises(PlanAgain):
        finish(late, group, with_errors)
    assert newest(tmp_path, MEMBER.errors).num_rows == before


def test_errors_that_one_is_late_with_never_appear_behind_a_tick_that_was_found(tmp_path: Path, log: Log) -> None:
    first, late = writer(TickCommits, log, tmp_path), writer(TickCommits, log, tmp_path, "job-2")
    log.follow(execute(first, log.group(1, 1), MEMBER))
    group = log.group(2, 2)
    with_errors, without = plan(late, group, MEMBER), plan(first, group, MEMBER)
    assert isinstance(with_errors, Due)
    assert isinstance(without, Due)
    first.commit(group, without, after_compaction(group, without), time.time())
    again = TickGroup((replace(group.last, attempts=2),))
    found = plan(writer(TickCommits, log, tmp_path, "job-3"), again, MEMBER)
    assert isinstance(found, Done)
    assert (spans(found.written, log), found.errors) == ({"data": [(2, 2)], "errors": [(2, 2)]}, 0)
    before = newest(tmp_path, MEMBER.errors).num_rows
    finish(late, group, with_errors)
    assert newest(tmp_path, MEMBER.errors).num_rows == before
