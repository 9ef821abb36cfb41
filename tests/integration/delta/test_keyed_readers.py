"""Keyed tables with deletion vectors, as the readers read them that need no Spark: now, and as of earlier ticks.

Compaction, checkpoint and maintenance come in every order, with ticks between them. tests/apps has the same with Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.keyed_history import History
from tests.support.keyed_orders import STEPS, go_through


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path, 1)
    yield made
    made.close()


@pytest.mark.parametrize("order", list(permutations(STEPS)), ids="-".join)
def test_all_read_the_same_rows_and_changes_in_every_order(history: History, order: tuple[str, ...]) -> None:
    go_through(history, order)
