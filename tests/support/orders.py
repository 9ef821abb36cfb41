"""A keyed table with the columns that the examples of docs/reference/reading.md ask for, whose rows have changed."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan
from tests.integration.delta.test_keyed_commits import UPSERT, Scene

ROWS = [("a", 2), ("c", 1)]
CHANGES = [
    (1, "insert", "a", 1),
    (1, "insert", "b", 1),
    (2, "delete", "b", 1),
    (2, "insert", "c", 1),
    (2, "update_postimage", "a", 2),
    (2, "update_preimage", "a", 1),
]


def orders(root: Path) -> Path:
    """The folder of a table with these rows, by these changes."""
    member = MemberPlan(
        "u1", format_target("json"), (("amount", "bigint"),), (("key", "id"),), "", "", envelope=UPSERT, keys=("id",)
    )
    scene = Scene(root, member)
    for tick, amounts in enumerate(({"a": 1, "b": 1}, {"a": 2, "b": None, "c": 1}), start=1):
        pairs = ((key, None if amount is None else json.dumps({"amount": amount})) for key, amount in amounts.items())
        scene.tick(tick, scene.events(tick, scene.records(*pairs)))
    scene.states.close()
    return Path(scene.collection.uri)
