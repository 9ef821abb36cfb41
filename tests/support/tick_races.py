"""Two holders of one keyed collection, who both execute the same ticks: see put_races.py."""

from __future__ import annotations

import json
import random
from pathlib import Path

from airflow_provider_mzshare.errors import Fenced
from tests.integration.delta.test_keyed_commits import Record, adding
from tests.support.put_races import Round


def ticks(number: int, folder: str, warehouse: str) -> Round:
    """A tick per round, as a holder and a zombie both execute it, with an index of its own; at times it compacts.

    What the tick's commit said: its version if this writer has put it, else None.
    """
    scene = adding(Path(folder, f"writer-{number}"), vectors=True, warehouse=warehouse)

    def one_round(each: int) -> int | None:
        if each % 5 == number:
            done = scene.states.rewrite(scene.opened(), min_files=2)
            if done is not None:
                scene.states.put_rewritten(scene.collection, done)
        try:
            result = scene.tick(each + 1, scene.events(each + 1, tick_records(each)), force=True)
        except Fenced:
            return None
        return None if result.already else result.version

    return one_round


def tick_records(each: int) -> list[Record]:
    """The records of one round, the same for whoever asks."""
    rng = random.Random(each)
    pairs = [(f"k{rng.randrange(10)}", rng.choice((None, 1, 7, 30))) for _ in range(6)]
    return [
        (0, each * 6 + at, key.encode(), None if value is None else json.dumps({"n": value}).encode())
        for at, (key, value) in enumerate(pairs)
    ]


def state_after(rounds: int) -> dict[str, int]:
    """What the keys hold after so many ticks: each value is added to what the key has."""
    held: dict[str, int] = {}
    for each in range(rounds):
        for _, _, key, value in tick_records(each):
            name = (key or b"").decode()
            old = held.pop(name, 0)
            if value is not None:
                held[name] = old + json.loads(value)["n"]
    return held
