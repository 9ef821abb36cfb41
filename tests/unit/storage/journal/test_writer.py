"""What a writer decides: who is acknowledged, who is refused, and what becomes of the file. Real files, real rules."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.rules import BatchDiffers, JournalBehind
from airflow_provider_mzshare.core.journal.state import PartitionState, folder_of
from airflow_provider_mzshare.core.ticklog.state import Lease
from airflow_provider_mzshare.errors import CatalogUnreachable, Fenced, LeaseTaken
from airflow_provider_mzshare.storage.journal import tail
from airflow_provider_mzshare.storage.journal.cutting import digest
from airflow_provider_mzshare.storage.journal.records import messages_of
from airflow_provider_mzshare.storage.journal.waiting import Acknowledged, Answer, BatchMark, Waiting, WaitingLine
from airflow_provider_mzshare.storage.journal.write_errors import (
    AnswerMissing,
    BatchTooLarge,
    NotWritten,
    PreviousNotTaken,
    WriterClosed,
)
from airflow_provider_mzshare.storage.journal.writer import JournalWriter, Limits, claim_partition
from tests.support.journal_memory import (
    Faulty,
    MemoryJournal,
    MemoryPartition,
    fenced_by,
    open_writer,
    read_values,
    times,
)
from tests.support.waiting import wait_until

SECONDS = 20


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "RETRY_SECONDS", (0.01,))


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def store() -> MemoryJournal:
    return MemoryJournal()


def values(*texts: str) -> pa.RecordBatch:
    return next(messages_of(texts))


def mark(name: str, messages: pa.RecordBatch) -> BatchMark:
    return BatchMark(name, digest(messages))


def got(done: Answer) -> tuple[int, int, bool]:
    found = done.result(SECONDS)
    return found.first, found.end, found.is_repeated


class Held:
    """Holds announcements up, so that others come to wait behind them."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.go.wait(SECONDS)


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.go.set()


def files(store: MemoryJournal, root: str) -> list[str]:
    return sorted(path.name for path in Path(root, folder_of(store.journal), "0").glob("*.journal"))


# ── group commit ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_waits_is_announced_together_and_in_order(store: MemoryJournal, root: str, held: Held) -> None:
    with open_writer(Faulty(store, before=held), root) as writer:
        first = writer.append(values("a", "b"))
        assert held.reached.wait(SECONDS)
        others = [writer.append(values(f"c{n}", f"d{n}")) for n in range(50)]
        held.go.set()
        assert [got(each) for each in (first, *others)] == [(2 * n, 2 * n + 2, False) for n in range(51)]
    assert store.announcements == 2
    assert read_values(store, root) == [b"a", b"b", *(f"{c}{n}".encode() for n in range(50) for c in "cd")]


def test_many_threads_have_each_of_their_messages_once_and_in_their_order(store: MemoryJournal, root: str) -> None:
    def push(thread: int) -> list[int]:
        return [got(writer.append(values(f"{thread}-{n}")))[0] for n in range(30)]

    with open_writer(store, root) as writer, ThreadPoolExecutor(16) as pool:
        offsets = list(pool.map(push, range(16)))
    found = read_values(store, root)
    assert all(found[at] == f"{t}-{n}".encode() for t, mine in enumerate(offsets) for n, at in enumerate(mine))
    assert len(found) == 480
    assert all(mine == sorted(mine) for mine in offsets)
    assert store.announcements < 240


def test_who_appends_more_than_may_wait_is_held_up(store: MemoryJournal, root: str, held: Held) -> None:
    limits = Limits(group=1_100, batch=1_100, waiting=2_200)
    with (
        open_writer(Faulty(store, before=held), root, limits=limits) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = [writer.append(values("x" * 900))]
        assert held.reached.wait(SECONDS)
        waiting.append(writer.append(values("x" * 900)))
        late = pool.submit(lambda: writer.append(values("y" * 900)))
        waiting.append(writer.append(values("s" * 10)))
        held.go.set()
        assert sorted(got(each)[0] for each in (*waiting, late.result(SECONDS))) == [0, 1, 2, 3]


def test_the_line_is_full_until_what_was_taken_is_settled() -> None:
    line = WaitingLine(100)
    line.put(Waiting(values("a"), 90))
    (taken,) = line.take(1)
    blocked = threading.Thread(target=line.put, args=(Waiting(values("b"), 20),))
    blocked.start()
    blocked.join(0.05)
    assert blocked.is_alive()
    line.let_go([taken])
    blocked.join(SECONDS)
    assert [one.weight for one in line.take(1)] == [20]


def test_a_message_larger_than_all_that_may_wait_goes_in_alone(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root, limits=Limits(10, 10, 10)) as writer:
        assert [got(writer.append(values("x" * 100))) for _ in range(2)] == [(0, 1, False), (1, 2, False)]
        with pytest.raises(BatchTooLarge):
            writer.append(values("x" * 100), BatchMark("b", ""))


def test_no_messages_are_acknowledged_at_once(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root) as writer:
        assert got(writer.append(values("a").slice(1), BatchMark("b", ""))) == (0, 0, False)
    assert not store.announcements


def test_closing_writes_what_waits_and_gives_the_lease_back(store: MemoryJournal, root: str, held: Held) -> None:
    writer = open_writer(Faulty(store, before=held), root)
    waiting = [writer.append(values(str(n))) for n in range(5)]
    assert held.reached.wait(SECONDS)
    held.go.set()
    writer.close()
    assert [got(each)[0] for each in waiting] == list(range(5))
    assert store.partition(0).lease().job_id is None
    with pytest.raises(WriterClosed):
        writer.append(values("late"))
    with open_writer(store, root, "push-b") as successor:
        assert got(successor.append(values("next"))) == (5, 6, False)
    assert files(store, root) == ["0000000001-00000001.journal", "0000000002-00000001.journal"]
    assert len(read_values(store, root)) == 6


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_that_was_sent_before_is_acknowledged_where_it_is(store: MemoryJournal, root: str) -> None:
    messages = values("a", "b")
    with open_writer(store, root) as writer:
        assert got(writer.append(values("0"))) == (0, 1, False)
        assert got(writer.append(messages, mark("x", messages))) == (1, 3, False)
    with open_writer(store, root, "push-b", partition=1) as writer:
        repeated = writer.append(messages, mark("x", messages)).result(SECONDS)
        assert repeated == Acknowledged(0, 1, 3, is_repeated=True)
        with pytest.raises(BatchDiffers):
            writer.append(values("a"), mark("x", values("a"))).result(SECONDS)
        assert got(writer.append(values("goes on"))) == (0, 1, False)
    assert read_values(store, root) == [b"0", b"a", b"b"]


def test_the_same_batch_twice_at_once_is_taken_once(store: MemoryJournal, root: str, held: Held) -> None:
    messages = values("a")
    with open_writer(Faulty(store, before=held), root) as writer:
        first = writer.append(values("0"))
        assert held.reached.wait(SECONDS)
        twins = [writer.append(messages, mark("x", messages)) for _ in range(3)]
        held.go.set()
        assert got(first) == (0, 1, False)
        assert [got(each) for each in twins] == [(1, 2, False), (1, 2, True), (1, 2, True)]


def test_a_batch_that_another_writer_announces_meanwhile_is_not_taken_again(
    store: MemoryJournal, root: str, held: Held
) -> None:
    """The other messages of its group are written anew, in the next file; the bytes of the first never count."""
    same, other = values("a"), values("b")
    calls: list[None] = []

    def before() -> None:
        calls.append(None)
        if len(calls) == 1:
            held()
        elif len(calls) == 2:
            with open_writer(store, root, "push-b", partition=1) as winner:
                winner.append(same, mark("same", same)).result(SECONDS)
                winner.append(values("w"), mark("differs", values("w"))).result(SECONDS)

    with open_writer(Faulty(store, before=before), root) as writer:
        assert writer.append(values("0")) is not None
        assert held.reached.wait(SECONDS)
        repeated = writer.append(same, mark("same", same))
        plain = writer.append(values("1"))
        differing = writer.append(other, mark("differs", other))
        new = writer.append(other, mark("new", other))
        held.go.set()
        assert repeated.result(SECONDS) == Acknowledged(1, 0, 1, is_repeated=True)
        assert (got(plain), got(new)) == ((1, 2, False), (2, 3, False))
        assert isinstance(differing.exception(SECONDS), BatchDiffers)
    assert read_values(store, root) == [b"0", b"1", b"b"]
    assert len(files(store, root)) == 2


# ── answers that get lost ─────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_that_is_lost_is_asked_for_until_it_comes(store: MemoryJournal, root: str) -> None:
    messages = values("a")
    with open_writer(Faulty(store, after=times(3)), root) as writer:
        assert got(writer.append(messages, mark("x", messages))) == (0, 1, False)
        assert got(writer.append(values("b"))) == (1, 2, False)
    assert read_values(store, root) == [b"a", b"b"]
    assert store.announcements == 2


def test_a_writer_that_has_to_end_says_that_the_answer_is_missing(store: MemoryJournal, root: str) -> None:
    writer = open_writer(Faulty(store, after=times(10**9)), root, grace=0.05)
    sent, waiting = writer.append(values("a")), writer.append(values("b"))
    wait_until(lambda: store.announcements, SECONDS, "the announcement")
    writer.close()
    assert isinstance(sent.exception(SECONDS), AnswerMissing)
    assert isinstance(waiting.exception(SECONDS), AnswerMissing)
    assert read_values(store, root)[:1] == [b"a"]


@pytest.mark.parametrize("was_announced", [True, False])
def test_an_error_of_the_catalog_that_nobody_knows_leaves_it_open(
    store: MemoryJournal, root: str, was_announced: bool
) -> None:
    """Whatever it is: if it may have come behind the commit, nobody may be told that nothing counts."""

    def broken() -> None:
        raise ZeroDivisionError

    faults = {"after": broken} if was_announced else {"before": broken}
    with open_writer(Faulty(store, **faults), root) as writer:
        assert isinstance(writer.append(values("a")).exception(SECONDS), AnswerMissing)
        with pytest.raises(AnswerMissing):
            writer.append(values("b")).result(SECONDS)
    assert read_values(store, root) == [b"a"] * was_announced


@pytest.mark.parametrize("was_announced", [True, False])
def test_a_zombie_whose_answer_was_lost_finds_out_what_counts(
    store: MemoryJournal, root: str, was_announced: bool
) -> None:
    def taken_over() -> None:
        if store.partition(0).lease().job_id == JobId("push-a"):
            fenced_by(store, 0)
            raise CatalogUnreachable("the answer got lost")

    faults = {"after": taken_over} if was_announced else {"before": taken_over}
    with open_writer(Faulty(store, **faults), root) as writer:
        done = writer.append(values("a"))
        if was_announced:
            assert got(done) == (0, 1, False)
        else:
            assert isinstance(done.exception(SECONDS), Fenced)
        assert isinstance(_refused(writer), Fenced)
    assert read_values(store, root) == [b"a"] * was_announced


def _refused(writer: JournalWriter) -> BaseException | None:
    try:
        return writer.append(values("late")).exception(SECONDS)
    except Fenced as error:
        return error


# ── other writers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_zombie_writes_is_never_read(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root) as zombie:
        assert got(zombie.append(values("a"))) == (0, 1, False)
        holder = fenced_by(store, 0)
        with JournalWriter(store, root, 0, holder, heartbeat_seconds=1) as successor:
            assert isinstance(zombie.append(values("z")).exception(SECONDS), Fenced)
            assert got(successor.append(values("b"))) == (1, 2, False)
            with pytest.raises(Fenced):
                zombie.append(values("z")).result(SECONDS)
    assert read_values(store, root) == [b"a", b"b"]
    assert len(files(store, root)) == 2


def test_a_lease_that_is_alive_is_not_taken(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root):
        seen = store.partition(0).lease()
        with pytest.raises(LeaseTaken):
            claim_partition(store, root, 0, JobId("push-b"))
        wait_until(lambda: store.partition(0).lease() != seen, SECONDS, "a heartbeat")
        with pytest.raises(LeaseTaken):
            claim_partition(store, root, 0, JobId("push-b"), stood_still=seen)
    assert claim_partition(store, root, 0, JobId("push-b")).epoch == 2


def test_a_file_of_an_epoch_that_the_catalog_does_not_know_stops_all(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root) as writer:
        writer.append(values("a")).result(SECONDS)
    before = files(store, root)
    restored = MemoryJournal(store.journal)
    for _ in range(3):
        with pytest.raises(JournalBehind) as refused:
            open_writer(restored, root)
        assert refused.value.reason == "catalog_behind"
    assert files(store, root) == before
    assert restored.partition(0).lease().epoch == 0, "a claim would make the epoch a known one"


def test_a_catalog_that_is_restored_while_a_partition_is_claimed_is_not_taken_for_the_one_before(
    store: MemoryJournal, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in "ab":
        with open_writer(store, root) as writer:
            writer.append(values(text)).result(SECONDS)
    load, old = MemoryPartition.load, replace(store.states[0], lease=Lease(epoch=1))

    def load_and_restore(self: MemoryPartition) -> PartitionState:
        """What is said is true when it is said; the files are looked at before the last time."""
        found = load(self)
        loads.append(None)
        if len(loads) == 2:
            store.states[0] = old
        return found

    loads: list[None] = []

    with monkeypatch.context() as patched:
        patched.setattr(MemoryPartition, "load", load_and_restore)
        with pytest.raises(LeaseTaken):
            claim_partition(store, root, 0, JobId("push-c"))
    assert store.states[0] == old


# ── disks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_after_a_flush_that_failed_the_next_segment_is_begun(
    store: MemoryJournal, root: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """No disk at hand fails when it is told to, so the call does. What the page cache has then is not asked."""
    with open_writer(store, root) as writer:
        assert got(writer.append(values("a"))) == (0, 1, False)

        def failing(descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", failing)
            first = writer.append(values("b"))
            second = writer.append(values("c"), follows=first)
            assert isinstance(first.exception(SECONDS), NotWritten)
            assert isinstance(second.exception(SECONDS), NotWritten | PreviousNotTaken)
        assert got(writer.append(values("d"))) == (1, 2, False)
    assert read_values(store, root) == [b"a", b"d"]
    assert len(files(store, root)) >= 2


def test_what_follows_messages_that_were_not_taken_is_not_taken(store: MemoryJournal, root: str, held: Held) -> None:
    messages = values("a")
    with open_writer(store, root, "push-b", partition=1) as other:
        other.append(messages, mark("x", messages)).result(SECONDS)
    with open_writer(Faulty(store, before=held), root) as writer:
        first = writer.append(values("0"))
        assert held.reached.wait(SECONDS)
        refused = writer.append(values("b"), mark("x", values("b")), follows=first)
        second = writer.append(values("c"), follows=refused)
        third = writer.append(values("d"), follows=second)
        free = writer.append(values("e"))
        held.go.set()
        assert got(first) == (0, 1, False)
        assert isinstance(refused.exception(SECONDS), BatchDiffers)
        assert isinstance(second.exception(SECONDS), PreviousNotTaken)
        assert isinstance(third.exception(SECONDS), PreviousNotTaken)
        assert got(free) == (1, 2, False)


def test_a_warehouse_that_is_gone_is_told_and_waited_for(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root) as writer:
        writer.append(values("a")).result(SECONDS)
    os.rename(root, f"{root}-away")
    with pytest.raises(NotWritten, match=root):
        open_writer(store, root)
    os.rename(f"{root}-away", root)
    with open_writer(store, root) as writer:
        assert got(writer.append(values("b"))) == (1, 2, False)
