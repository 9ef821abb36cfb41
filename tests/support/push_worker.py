"""A process that pushes at random from a few threads, and writes down what it sends and what it is told, line by line.

``python -m tests.support.push_worker FILE SEED COUNT``: what it had sent under the id of a batch before it was killed,
and was not told of, it sends again first. ``check`` compares a journal with all such files.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from airflow_provider_mzshare import connect
from airflow_provider_mzshare.control.lifecycle.pushing import Pusher
from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.storage.journal.write_errors import AnswerMissing

THREADS = 4


class Diary:
    """:param run: of this process, among all that wrote into the file."""

    def __init__(self, file: TextIO, run: int) -> None:
        self._file, self.run = file, run
        self._lock = threading.Lock()

    def note(self, **what: Any) -> None:
        with self._lock:
            self._file.write(json.dumps({**what, "run": self.run}) + "\n")
            self._file.flush()


def read(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines[:-1]]  # What was being written when it was killed was not sent.


def main(path: Path, seed: int, count: int) -> None:
    before = read(path)
    run = 1 + max((line["run"] for line in before), default=0)
    chance = random.Random(f"{seed} {run}")
    again = list(unsettled(before).items())
    with path.open("a") as file, connect() as mz:
        diary = Diary(file, run)
        left = list(pushes(path.stem, run, chance, count))
        while again or left:
            with suppress(TransientError), mz.pusher("inbox", wait=60) as pusher, ThreadPoolExecutor(THREADS) as pool:
                done = list(pool.map(lambda one: push(pusher, diary, *one), again))
                again = [one for one, settled in zip(again, done, strict=True) if not settled]
                if not again:
                    done = list(pool.map(lambda one: push(pusher, diary, *one), left))
                    again = [one for one, settled in zip(left, done, strict=True) if not settled and one[1]["batch"]]
                    left = []


def unsettled(lines: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Batches that were sent, of which nobody knows whether they count."""
    sent = {line["sent"]: {"batch": line["batch"], "values": line["values"]} for line in lines if line.get("batch")}
    told = {line["told"] for line in lines if "told" in line}
    return {name: what for name, what in sent.items() if name not in told}


def pushes(worker: str, run: int, chance: random.Random, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in range(count):
        name = f"{worker}.{run}.{number}"
        size = chance.choice((1, 1, 2, 7, 300))
        batch = name if chance.random() < 0.6 else None
        yield name, {"batch": batch, "values": [f"{name}.{n}" for n in range(size)]}


def push(pusher: Pusher, diary: Diary, name: str, what: Mapping[str, Any]) -> bool:
    """False: it is to be sent again, or it is not known whether it counts."""
    diary.note(sent=name, **what)
    try:
        pushed = pusher.push(what["values"], batch=what["batch"])
    except AnswerMissing:
        return False
    except MzShareError as error:
        diary.note(refused=name, acknowledged=getattr(error, "acknowledged", 0), why=error.line)
        return False
    diary.note(told=name, ranges=[asdict(each) for each in pushed.ranges])
    return True


# ── the check ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def check(diaries: Sequence[Path], found: Mapping[int, Sequence[str]]) -> Counter[str]:
    """What counts, by partition, against what was told. Returns how often each of these things happened.

    Acknowledged messages are where it was said, once; of a push of which nothing was heard, a beginning may count; of
    one that was refused only what was said; and a batch that was settled in the end is there once, however often sent.
    """
    seen = Counter(text for texts in found.values() for text in texts)
    happened: Counter[str] = Counter()
    assert set(seen.values()) <= {1}, [text for text, count in seen.items() if count > 1][:5]
    expected: set[str] = set()
    for path in diaries:
        lines = read(path)
        sent = {line["sent"]: line for line in lines if "sent" in line}
        told = {line["told"]: line for line in lines if "told" in line}
        refused = {line["refused"]: line for line in lines if "refused" in line}
        happened["sent"] += sum("sent" in line for line in lines)
        happened["runs"] += max((line["run"] for line in lines), default=0)
        for name, line in sent.items():
            values = line["values"]
            expected.update(values)
            if name in told:
                told_values = [
                    text for r in told[name]["ranges"] for text in found[r["partition"]][r["first"] : r["end"]]
                ]
                assert told_values == values, name
                happened["repeated"] += any(r["is_repeated"] for r in told[name]["ranges"])
                happened["told"] += 1
                continue
            there = [text for text in values if seen[text]]
            assert there == values[: len(there)], f"{name}: not a beginning"
            assert not line["batch"] or len(there) in (0, len(values)), f"{name}: a batch by halves"
            if name in refused and not line["batch"]:
                assert len(there) == refused[name]["acknowledged"], f"{name}: {refused[name]['why']}"
                happened["refused"] += 1
            else:
                happened["unheard"] += 1
    assert set(seen) <= expected, "something that nobody sent"
    return happened


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
