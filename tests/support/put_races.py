"""Real processes that race for names in an object store, round by round; all leave the gate of a round together.

Imports little: each process of a race loads it anew.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_mzshare.storage.collections.vectors import puts

_SPAWN = multiprocessing.get_context("spawn")
_DEADLINE_S = 120
"""For one round, and for the start of a process."""
Round = Callable[[int], Any]


def race(racer: Callable[..., Round], writers: int, rounds: int, *given: Any) -> list[list[Any]]:
    """What each writer answered, round by round. A writer that dies fails the race.

    :param racer: a function of a module: called with the writer's number and ``given``, it gives what a round does.
    """
    answers: Queue[Any] = _SPAWN.Queue()
    gate = _SPAWN.Barrier(writers)
    processes = [
        _SPAWN.Process(target=_run, args=(racer, number, rounds, given, gate, answers)) for number in range(writers)
    ]
    for process in processes:
        process.start()
    try:
        found = [answers.get(timeout=_DEADLINE_S + 2 * rounds) for _ in processes]
        for process in processes:
            process.join(_DEADLINE_S)
    finally:
        for process in processes:
            process.kill()
            process.join()
    failed = [answer for _, answer in found if isinstance(answer, BaseException)]
    if failed:
        raise failed[0]
    return [answer for _, answer in sorted(found)]


def _run(
    racer: Callable[..., Round], number: int, rounds: int, given: Sequence[Any], gate: Barrier, answers: Queue[Any]
) -> None:
    try:
        one_round = racer(number, *given)
        found = []
        for each in range(rounds):
            gate.wait(_DEADLINE_S)
            found.append(one_round(each))
        answers.put((number, found))
    except BaseException as error:
        gate.abort()
        answers.put((number, RuntimeError(f"writer {number}: {type(error).__name__}: {error}")))


def content_of(writer: int, each: int) -> bytes:
    return f"writer {writer}, round {each}".encode()


def bare(number: int, urls: Sequence[str], headers: dict[str, str]) -> Round:
    """One request per round, and nothing of ours or of any library between: the status is the answer."""
    connection = HTTPConnection(urlsplit(urls[0]).netloc, timeout=_DEADLINE_S)

    def one_round(each: int) -> int:
        parts = urlsplit(urls[each])
        connection.request("PUT", f"{parts.path}?{parts.query}", content_of(number, each), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    return one_round


def entries(number: int, uri: str) -> Round:
    """A log entry per round: the answer to the put, and whether the log has it right after."""

    def one_round(each: int) -> tuple[str, bool]:
        answer = puts.put_entry(uri, each, content_of(number, each))
        return answer, puts.list_entries(uri, each)[0][:1] == (each,)

    return one_round
