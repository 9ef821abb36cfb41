"""``mz.push`` and ``mz.pusher`` on real catalogs and files: what is acknowledged counts once, errors say the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import delete, insert, select

from airflow_provider_mzshare.control.catalog.database.journal_models import (
    JournalBatchRow,
    JournalPartitionRow,
    JournalSegmentRow,
)
from airflow_provider_mzshare.control.lifecycle import pushing
from airflow_provider_mzshare.control.lifecycle.partition_choice import NoSuchPartition, PartitionsTaken
from airflow_provider_mzshare.control.lifecycle.pushing import (
    BadBatchId,
    NotPushable,
    PusherReplaced,
    PushRefused,
)
from airflow_provider_mzshare.core.journal.rules import BatchDiffers, JournalBehind
from airflow_provider_mzshare.core.journal.state import Batch, folder_of
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.storage.journal.records import BadRecord
from airflow_provider_mzshare.storage.journal.waiting import Acknowledged
from airflow_provider_mzshare.storage.journal.write_errors import WriterClosed
from airflow_provider_mzshare.storage.journal.writer import JournalWriter
from tests.support.inbox import Inbox
from tests.support.journal_memory import Faulty, times


def test_what_is_pushed_is_there_in_its_order(inbox: Inbox) -> None:
    first = inbox.mz.push("inbox", ["a", b"b", {"value": None, "key": "k"}])
    assert (first.messages, first.repeated, first.ranges) == (3, 0, (Acknowledged(0, 0, 3),))
    second = inbox.mz.push("inbox", pa.table({"value": ["c", "d"]}))
    assert second.ranges == (Acknowledged(0, 3, 5),)
    assert inbox.values() == [b"a", b"b", None, b"c", b"d"]
    assert inbox.mz.push("inbox", []).messages == 0


def test_what_is_pushed_is_as_private_as_all_that_apps_write(inbox: Inbox) -> None:
    """Whatever the umask is of the process that pushes."""
    before = os.umask(0o002)
    try:
        inbox.mz.push("inbox", ["a"])
    finally:
        os.umask(before)
    made = [*Path(inbox.root, folder_of(inbox.store.journal)).rglob("*")]
    assert {(path.is_dir(), path.stat().st_mode & 0o777) for path in made} == {(True, 0o700), (False, 0o600)}


def test_a_long_push_is_cut_and_stays_in_order(inbox: Inbox) -> None:
    told: list[int] = []
    with inbox.mz.pusher("inbox") as pusher:
        pushed = pusher.push((f"{n}".rjust(200) for n in range(20_000)), report=told.append)
    assert pushed.ranges == (Acknowledged(0, 0, 20_000),)
    assert told == sorted(told)
    assert told[-1] == 20_000
    assert [int(value or 0) for value in inbox.values()] == list(range(20_000))


def test_many_threads_share_flushes_and_announcements(inbox: Inbox) -> None:
    def push(thread: int) -> list[int]:
        return [pusher.push([f"{thread}-{n}"]).ranges[0].first for n in range(20)]

    store = inbox.store
    asked = [0]

    def count() -> None:
        asked[0] += 1

    with inbox.writer(Faulty(store, before=count)) as writer, ThreadPoolExecutor(16) as pool:
        pusher = pushing.Pusher("inbox", writer)
        offsets = list(pool.map(push, range(16)))
    found = inbox.texts()
    assert all(found[at] == f"{thread}-{n}" for thread, mine in enumerate(offsets) for n, at in enumerate(mine))
    assert len(found) == 320
    assert asked[0] < 160


def test_a_batch_is_taken_once_whoever_sends_it_again(inbox: Inbox) -> None:
    records = [{"key": "k", "value": str(n), "headers": {"n": str(n)}} for n in range(10)]
    assert inbox.mz.push("inbox", records, batch="b 1").repeated == 0
    again = inbox.mz.push("inbox", records, batch="b 1")
    assert (again.messages, again.repeated, again.ranges) == (10, 10, (Acknowledged(0, 0, 10, is_repeated=True),))
    with pytest.raises(BatchDiffers, match="b 1"):
        inbox.mz.push("inbox", records[1:], batch="b 1")
    assert inbox.mz.push("inbox", records, batch="b 2").ranges == (Acknowledged(0, 10, 20),)
    assert len(inbox.values()) == 20
    for bad in ("", "a\nb", "x" * 501, "a\udcffb", 5):
        with pytest.raises(BadBatchId):
            inbox.mz.push("inbox", records, batch=bad)


def test_a_large_batch_is_taken_in_parts_each_of_them_once(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "PART", 1_000)
    records = [f"{n}".rjust(60) for n in range(95)]

    def broken() -> Iterator[str]:
        yield from records[:50]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        inbox.mz.push("inbox", broken(), batch="b")
    pushed = inbox.mz.push("inbox", iter(records), batch="b")
    assert (pushed.messages, pushed.repeated) == (95, 0)
    again = inbox.mz.push("inbox", pa.table({"value": records}), batch="b")
    assert (again.messages, again.repeated) == (95, 95)
    assert [text.strip() for text in inbox.texts()] == [str(n) for n in range(95)]


def test_a_wrong_record_in_a_stream_says_how_many_were_taken(inbox: Inbox) -> None:
    def coming() -> Iterator[object]:
        yield from (str(n) for n in range(4_000))
        yield 7

    with pytest.raises(PushRefused, match="the first 4000 records were taken") as refused:
        inbox.mz.push("inbox", coming())
    assert refused.value.acknowledged == 4_000
    assert "record 4001: it is a value of type int" in refused.value.message
    with pytest.raises(BadRecord, match="record 2: "):
        inbox.mz.push("inbox", ["a", 7])
    assert len(inbox.values()) == 4_000


def test_only_journals_are_pushed_into(inbox: Inbox) -> None:
    inbox.mz.sql("CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER")
    with pytest.raises(NotPushable, match="numbers"):
        inbox.mz.push("numbers", ["a"])


# ── partitions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pushers_share_the_partitions_and_say_who_holds_them(opened: Callable[..., Inbox]) -> None:
    inbox = opened(partitions=2)
    with inbox.mz.pusher("inbox") as first, inbox.mz.pusher("inbox") as second:
        assert (first.partition, second.partition) == (0, 1)
        assert first.push(["a"]).ranges[0].partition == 0
        with pytest.raises(PartitionsTaken, match="PARTITIONS 2") as taken:
            inbox.mz.push("inbox", ["c"], wait=0.3)
        assert isinstance(taken.value, TransientError)
        assert all(job in taken.value.message for job in taken.value.holders.values())
        with pytest.raises(PartitionsTaken, match="partition 1 is held by push-"):
            inbox.mz.push("inbox", ["c"], partition=1, wait=0)
    assert inbox.mz.push("inbox", ["b"], partition=1).ranges == (Acknowledged(1, 0, 1),)
    assert inbox.mz.push("inbox", ["c"]).ranges == (Acknowledged(0, 1, 2),)
    with pytest.raises(NoSuchPartition, match="partitions 0 to 1"):
        inbox.mz.push("inbox", ["c"], partition=2)


def test_who_waits_gets_a_partition_that_is_given_back(inbox: Inbox) -> None:
    with ThreadPoolExecutor(1) as pool:
        with inbox.mz.pusher("inbox") as pusher:
            pusher.push(["a"])
            waiting = pool.submit(inbox.mz.push, "inbox", ["b"])
        assert waiting.result(30).ranges == (Acknowledged(0, 1, 2),)


def test_a_pusher_that_was_killed_is_taken_over(inbox: Inbox) -> None:
    killed = inbox.run("-f", "-", stdin="a\n", crash="segment_flushed")
    assert killed.returncode == -9
    assert inbox.mz.push("inbox", ["b"]).ranges == (Acknowledged(0, 0, 1),)
    assert inbox.texts() == ["b"]


def test_a_zombie_says_that_it_was_replaced_and_nothing_of_it_counts(inbox: Inbox) -> None:
    with inbox.mz.pusher("inbox") as zombie:
        zombie.push(["a"])
        inbox.taken_over()
        with pytest.raises(PusherReplaced):
            zombie.push(["z"])
        with pytest.raises(PusherReplaced):
            zombie.push(["z"])
    inbox.store.partition(0).load()
    assert inbox.mz.push("inbox", ["b"]).ranges == (Acknowledged(0, 1, 2),)
    assert inbox.texts() == ["a", "b"]


def test_two_writers_on_one_partition(inbox: Inbox) -> None:
    """Both believe that they hold it; only one of them does."""

    def push(one: pushing.Pusher, text: str) -> object:
        try:
            return one.push([text]).messages
        except PusherReplaced as error:
            return type(error)

    with inbox.writer() as writer, ThreadPoolExecutor(2) as pool:
        zombie = pushing.Pusher("inbox", writer)
        zombie.push(["a"])
        with JournalWriter(inbox.store, inbox.root, 0, inbox.taken_over(), heartbeat_seconds=0.2) as other:
            outcomes = list(pool.map(push, [zombie, pushing.Pusher("inbox", other)], ["z", "b"]))
    assert outcomes == [PusherReplaced, 1]
    assert inbox.texts() == ["a", "b"]


# ── answers, and catalogs, that get lost ──────────────────────────────────────────────────────────────────────────────


def test_a_lost_answer_of_the_catalog_loses_and_doubles_nothing(inbox: Inbox) -> None:
    with inbox.writer(Faulty(inbox.store, after=times(2))) as writer:
        pusher = pushing.Pusher("inbox", writer)
        assert pusher.push(["a", "b"], batch="x").ranges == (Acknowledged(0, 0, 2),)
        assert pusher.push(["c"]).ranges == (Acknowledged(0, 2, 3),)
    assert inbox.texts() == ["a", "b", "c"]


def test_a_catalog_that_has_lost_an_epoch_is_not_written_beside(inbox: Inbox) -> None:
    inbox.mz.push("inbox", ["a"])
    folder = Path(inbox.root, folder_of(inbox.store.journal), "0")
    (folder / "0000000007-00000001.journal").write_bytes(b"of a pusher that the catalog has lost")
    before = sorted(folder.iterdir())
    for _ in range(2):
        with pytest.raises(JournalBehind) as refused:
            inbox.mz.push("inbox", ["b"])
        assert refused.value.reason == "catalog_behind"
    assert sorted(folder.iterdir()) == before


def test_a_catalog_that_was_restored_to_a_copy_of_an_open_pusher_is_not_written_beside(inbox: Inbox) -> None:
    tables = [row.__table__ for row in (JournalPartitionRow, JournalSegmentRow, JournalBatchRow)]
    with inbox.mz.pusher("inbox") as pusher:
        pusher.push(["a"], batch="a")
        with inbox.catalog.read() as session:
            copy = [[dict(row) for row in session.execute(select(table)).mappings()] for table in tables]
        pusher.push(["b"], batch="b")
    with inbox.catalog.write() as session:
        for table, rows in zip(tables, copy, strict=True):
            session.execute(delete(table))
            session.execute(insert(table), rows)
    for _ in range(2):
        with pytest.raises(JournalBehind, match="it ends at 1, and what epoch 1 wrote was announced to 2"):
            inbox.mz.push("inbox", ["c"])
    assert inbox.texts() == ["a"]


def test_batches_that_two_processes_send_at_the_same_time_are_taken_once(opened: Callable[..., Inbox]) -> None:
    inbox = opened(partitions=2)
    script = (
        "import sys; from airflow_provider_mzshare import connect\n"
        "with connect() as mz, mz.pusher('inbox') as pusher:\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    print(sum(pusher.push([f'{n}', f'{n}+'], batch=f'b{n}').repeated for n in range(60)))\n"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script]
    both = [subprocess.Popen(command, env=inbox.env, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    assert [process.stdout and process.stdout.readline() for process in both] == ["ready\n"] * 2
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    repeated = sum(int(process.communicate(timeout=60)[0]) for process in both)
    found = [*inbox.texts(0), *inbox.texts(1)]
    assert sorted(found) == sorted(f"{n}{end}" for n in range(60) for end in ("", "+"))
    assert repeated == 120


def test_a_process_that_was_forked_is_told_to_open_a_pusher_of_its_own(inbox: Inbox) -> None:
    with inbox.mz.pusher("inbox") as pusher:
        child = os.fork()
        if not child:
            try:
                pusher.push(["from the child"])
            except WriterClosed:
                os._exit(7)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        pusher.push(["from the parent"])
    assert inbox.texts() == ["from the parent"]


@dataclass
class Odd(Faulty):
    """Fails once, as nobody foresaw, where it is asked for batches."""

    is_odd: bool = True

    def batches(self, ids: Collection[str]) -> Mapping[str, Batch]:
        if self.is_odd:
            self.is_odd = False
            raise KeyError("not foreseen")
        return super().batches(ids)


def test_an_error_that_nobody_foresaw_ends_the_push_and_not_the_pusher(inbox: Inbox) -> None:
    with inbox.writer(Odd(inbox.store)) as writer:
        pusher = pushing.Pusher("inbox", writer)
        with pytest.raises(KeyError):
            pusher.push(["a"], batch="a")
        pusher.push(["b"], batch="b")
    assert inbox.texts() == ["b"]
