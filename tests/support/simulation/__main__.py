"""Replay one seed and tell what happened.

``python -m tests.support.simulation [keyed | keeping | vectors | late] SEED [MUTANT]``
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Left, TableState, Tick
from tests.support.simulation import (
    KEEPING,
    KEEPING_KINDS,
    KEYED,
    KEYED_KINDS,
    LATE,
    VECTORS,
    LateWorld,
    Mutant,
    VectorWorld,
    Violation,
    World,
)
from tests.support.simulation.catalog import Catalog
from tests.support.simulation.delta import Delta
from tests.support.simulation.keyed import APPEND
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.topic import Topic
from tests.support.simulation.vector_delta import VectorDelta

TOLD: dict[type, tuple[str, ...]] = {
    Catalog: (
        "claim", "presume_dead", "create_tables", "drop_table", "change_spec", "resume", "resnapshot", "merge", "arm",
        "retire", "mint", "mint_empty", "begin_attempt", "spare_attempt", "commit", "follow",
    ),
    Delta: ("append", "send", "land", "lose"),
    KeyedDelta: ("append", "put", "put_late"),
    VectorDelta: ("append", "put", "remove", "remove_checkpoint", "remove_entry", "add_checkpoint"),
    VectorWorld: ("hours_pass",),
    Topic: ("produce", "add_partition", "compact"),
}  # fmt: skip


def told(of: type, name: str) -> Callable[..., Any]:
    method = getattr(of, name)

    @wraps(method)
    def telling(self: Any, *arguments: Any, **named: Any) -> Any:
        what = f"{getattr(self, 'name', of.__name__.lower())}.{name}({', '.join(short(a) for a in arguments)})"
        try:
            answer = method(self, *arguments, **named)
        except Exception as error:
            print(f"{what}: {type(error).__name__}: {error}")
            raise
        print(what, f"-> {short(answer)}" if answer is not None else "", table_line(self))
        return answer

    return telling


def table_line(value: object) -> str:
    if isinstance(value, Topic):
        return f"{value.end} gone {value.gone:b}"
    if not isinstance(value, Catalog):
        return ""
    both = [*value.state.tables.values(), *(value.state.replacements.values())]
    return "\n    " + "  ".join(short(table) for table in both)


def short(value: object) -> str:
    if isinstance(value, Holder):
        return f"{value.job_id}#{value.epoch}"
    if isinstance(value, Tick):
        return f"tick {value.number} [{value.lower}, {value.upper}) @{value.mz_timestamp}"
    if isinstance(value, TableState):
        return f"{value.table_id}/{value.generation} {value.status} next {value.next_tick} upper {value.upper}"
    if isinstance(value, Done):
        return f"done {[f'{w.collection_id} v{w.version} {w.first_timestamp}-{w.mz_timestamp}' for w in value.written]}"
    if isinstance(value, Left):
        return "left"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {short(one)}" for key, one in value.items()) + "}"
    return str(value) if isinstance(value, Position) else repr(value)


def main(world: World, seed: int) -> int:
    for of, names in TOLD.items():
        for name in names:
            setattr(of, name, told(of, name))
    try:
        world.run()
        world.check()
    except Violation as violation:
        print(f"seed {seed}: {violation}")
        return 1
    print(f"seed {seed}: nothing wrong")
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    chosen = Mutant[arguments[-1].upper()] if not arguments[-1].isdigit() else Mutant.NONE
    said = arguments[0] if not arguments[0].isdigit() else ""
    chosen_seed = int(arguments[bool(said)])
    if said == "late" or chosen in LATE:
        sys.exit(main(LateWorld(chosen_seed, chosen), chosen_seed))
    if said == "vectors" or chosen in VECTORS:
        sys.exit(main(VectorWorld(chosen_seed, chosen), chosen_seed))
    kinds: tuple[str, ...] = (APPEND,)
    if said == "keeping" or chosen in KEEPING:
        kinds = KEEPING_KINDS
    elif said == "keyed" or chosen in KEYED:
        kinds = KEYED_KINDS
    sys.exit(main(World(chosen_seed, chosen, kinds), chosen_seed))
