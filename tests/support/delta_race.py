"""Real processes that race on one collection; each leaves at the gate together with the others."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from typing import Any

from airflow_provider_mzshare.errors import Fenced
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from tests.support.delta import NAME, SCHEMA, write_tick

_SPAWN = multiprocessing.get_context("spawn")
_DEADLINE_S = 120


@dataclass(frozen=True)
class Racer:
    """One process: what it does, and with what."""

    role: str
    ticks: int = 0


def race(root: str, racers: Sequence[Racer]) -> list[Any]:
    """Run all of them at once and give back their answers, in no order. A racer that dies fails the race."""
    answers: Queue[Any] = _SPAWN.Queue()
    gate, finished = _SPAWN.Barrier(len(racers)), _SPAWN.Event()
    processes = [_SPAWN.Process(target=_run, args=(root, racer, gate, finished, answers)) for racer in racers]
    for process in processes:
        process.start()
    try:
        results = [answers.get(timeout=_DEADLINE_S) for _ in processes]
    finally:
        finished.set()
        for process in processes:
            process.join(_DEADLINE_S)
            if process.is_alive():
                process.kill()
    failed = [result for result in results if isinstance(result, BaseException)]
    if failed:
        raise failed[0]
    return results


def _run(root: str, racer: Racer, gate: Barrier, finished: Event, answers: Queue[Any]) -> None:
    try:
        if racer.role == "create":
            gate.wait(_DEADLINE_S)
            create_collection(root, NAME, SCHEMA)
            answers.put(Collection.open(root, NAME).delta_version)
            return
        collection = Collection.open(root, NAME)
        gate.wait(_DEADLINE_S)
        if racer.role == "write":
            answers.put(_write(collection, racer.ticks))
            finished.set()
        else:
            answers.put(_compact_until(collection, finished))
    except BaseException as error:
        finished.set()
        gate.abort()
        answers.put(RuntimeError(f"{racer.role}: {type(error).__name__}: {error}"))


def _write(collection: Collection, ticks: int) -> dict[int, int]:
    """Every tick in turn, like a holder that was never told to stop; the versions of the ticks it wrote itself."""
    won: dict[int, int] = {}
    for tick in range(1, ticks + 1):
        try:
            result = write_tick(collection, tick)
        except Fenced:
            continue
        if not result.already and result.version is not None:
            won[tick] = result.version
    return won


def _compact_until(collection: Collection, finished: Event) -> int:
    """How many compactions landed before the writers were done."""
    landed = 0
    while not finished.wait(0.01):
        landed += compact(collection, min_files=2).done
    return landed
