"""``mzshare push`` as people run it: files, pipes, ends by signals, and what it says."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from airflow_provider_mzshare.storage.crashpoints import JOURNAL_LABELS
from tests.support.inbox import Inbox
from tests.support.waiting import wait_until


def test_lines_of_a_file_are_records(inbox: Inbox, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\nb\n\nlast")
    ran = inbox("-f", str(file), "--batch", "x")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "acknowledged: 4 records: partition 0, offsets 0 to 3\n"
    again = json.loads(inbox("-f", str(file), "--batch", "x", "-o", "json").stdout)
    assert (again["messages"], again["repeated"]) == (4, 4)
    assert again["ranges"] == [{"partition": 0, "first": 0, "end": 4, "is_repeated": True}]
    file.write_text("other")
    refused = inbox("-f", str(file), "--batch", "x")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: the journal has batch 'x'")
    assert inbox.texts() == ["a", "b", "", "last"]


def test_lines_of_json_have_keys_headers_and_times(inbox: Inbox, tmp_path: Path) -> None:
    lines = [
        {"key": "k", "value": {"n": 1}, "headers": {"h": "x"}, "timestamp": "2026-01-31T12:00:00Z"},
        {"key": "k", "value": None},
    ]
    file = tmp_path / "lines"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ran = inbox("-f", str(file), "--format", "jsonl")
    assert ran.returncode == 0, ran.stderr
    assert inbox.values() == [b'{"n": 1}', None]
    file.write_text('{"value": 1}\n{"val": 1}\n')
    wrong = inbox("-f", str(file), "--format", "jsonl")
    assert wrong.returncode == 1
    assert "line 2: it is no record" in wrong.stderr
    assert inbox.values() == [b'{"n": 1}', None], "nothing of it was taken"


def test_lines_of_a_pipe_are_taken_as_they_come_and_an_interrupt_says_how_many(inbox: Inbox) -> None:
    process = inbox.start("-f", "-")
    assert process.stdin
    process.stdin.write("a\nb\nunfinished")
    process.stdin.flush()
    wait_until(lambda: inbox.texts() == ["a", "b"], 30, "the first lines")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.communicate()[1] == "interrupted: 2 records are acknowledged\n"
    assert inbox.texts() == ["a", "b"]
    inbox.wait_free()


def test_nobody_reads_the_answer(inbox: Inbox) -> None:
    process = inbox.start("-f", "-")
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    _, told = process.communicate("a\n", timeout=60)
    assert process.returncode == 1
    assert told == "acknowledged: 1 record: partition 0, offsets 0 to 0\n"
    assert inbox.texts() == ["a"]


def test_what_is_wrong_is_one_line(inbox: Inbox, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("a\n")
    for words, told in (
        (("-f", str(tmp_path / "none")), "No such file or directory"),
        (("-f", str(file), "--partition", "3"), "has no partition 3: it has partition 0 alone"),
        (("-f", str(file), "--batch", ""), "cannot be the id of a batch"),
    ):
        ran = inbox(*words)
        assert ran.returncode == 1
        assert told in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
    with inbox.mz.pusher("inbox"):
        ran = inbox("-f", str(file), "--timeout", "0")
        assert "no partition of source inbox (PARTITIONS 1) was free" in ran.stderr
    assert inbox.texts() == []


# ── ends anywhere ─────────────────────────────────────────────────────────────────────────────────────────────────────


SMALL = ("segment_flushed", "announced")


@pytest.mark.parametrize(
    "label", [label if label in SMALL else pytest.param(label, marks=pytest.mark.full) for label in JOURNAL_LABELS]
)
def test_a_push_that_is_killed_and_sent_again_under_its_id_counts_once(inbox: Inbox, label: str) -> None:
    inbox.mz.push("inbox", ["before"])
    lines = [f"line {n}" for n in range(3_000)]
    killed = inbox.run("-f", "-", "--batch", "b", stdin="\n".join(lines), crash=label)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    counted = inbox.texts()
    assert counted == ["before", *(lines if label == "announced" else [])]
    again = inbox.mz.push("inbox", lines, batch="b")
    assert again.repeated == (3_000 if label == "announced" else 0)
    inbox.mz.push("inbox", ["after"])
    assert inbox.texts() == ["before", *lines, "after"]


@pytest.mark.full(seconds=60)
@pytest.mark.parametrize("label", JOURNAL_LABELS)
def test_a_push_in_parts_that_is_killed_goes_on_with_those_that_are_missing(
    inbox: Inbox, tmp_path: Path, label: str
) -> None:
    """Two parts of a batch and a bit: it dies at the second."""
    file = tmp_path / "large"
    lines = [f"{n} ".ljust(8_000, "x") for n in range(9_000)]
    file.write_text("\n".join(lines))
    crash = f"{label}@{1 if label == 'segment_begun' else 2}"
    assert inbox.run("-f", str(file), "--batch", "b", crash=crash).returncode == -signal.SIGKILL
    again = json.loads(inbox.run("-f", str(file), "--batch", "b", "-o", "json").stdout)
    assert again["messages"] == 9_000
    assert again["repeated"] < 9_000
    assert inbox.texts() == lines


def test_a_pusher_that_is_stopped_and_goes_on_after_it_was_replaced(inbox: Inbox, tmp_path: Path) -> None:
    """A zombie in a process of its own: it has flushed its bytes, and wakes up when another one has the partition."""
    held = tmp_path / "held"
    zombie = inbox.start("-f", "-", "--batch", "b", crash=f"segment_flushed:hold={held}")
    assert zombie.stdin
    zombie.stdin.write("z\n" * 10)
    zombie.stdin.close()
    zombie.stdin = None
    wait_until(held.exists, 60, "the pusher to be held")
    zombie.send_signal(signal.SIGSTOP)
    try:
        inbox.mz.push("inbox", ["a"])
    finally:
        held.unlink()
        zombie.send_signal(signal.SIGCONT)
    _, told = zombie.communicate(timeout=60)
    assert zombie.returncode == 1
    assert "another process pushes into this partition of source inbox now" in told
    assert inbox.texts() == ["a"]
    assert inbox.mz.push("inbox", ["z"] * 10, batch="b").repeated == 0


def test_help_names_what_there_is(inbox: Inbox) -> None:
    told = inbox("--help").stdout
    assert all(word in told for word in ("--file", "--format", "--batch", "--partition", "lines", "jsonl"))
