"""Change streams of tables on an object store: the same law, over the same histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.change_streams import Streams
from tests.support.random_histories import NAMES, RandomHistory
from tests.support.s3 import S3Server


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seed", "steps", "probes"), [(21, 10, 3), pytest.param(4, 40, 8, marks=pytest.mark.full(seconds=30))]
)
def test_changes_add_up_on_an_object_store(s3: S3Server, tmp_path: Path, seed: int, steps: int, probes: int) -> None:
    """Ticks, stalls, healing, generations, kills, compactions, maintenance; both writers, and rows that only add."""
    history = RandomHistory(tmp_path, seed, warehouse=s3.new_root())
    history.run(steps)
    compared = [Streams(history.catalog, history.root, name, probes=probes).check() for name in NAMES]
    assert sum(compared) > 10
    assert sum(history.done.values()) > 5, "hardly anything has happened"
    history.close()
