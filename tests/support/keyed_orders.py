"""What is done to a keyed table besides its ticks, in a given order, and all readers after each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tests.support.keyed_history import ROW, History
from tests.support.keyed_readers import Look, Rows, feeds, held, readers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_TICKS = 15
"""Some more than a checkpoint's interval: the oldest version that is kept lies behind one, so that entries go too."""


def maintain(history: History) -> None:
    """What is dead goes, what is needed stays."""
    before = history.kept
    gone = history.maintain()
    check_files(history)
    assert history.kept > before, "since has moved"
    assert any(path.startswith("_change_data/") for path in gone.data_files)


def check_files(history: History) -> None:
    present, needed = history.present(), history.needed()
    assert present == needed, f"missing {sorted(needed - present)}, left {sorted(present - needed)}"


STEPS: Mapping[str, Callable[[History], None]] = {
    "compact": History.compact,
    "checkpoint": History.checkpoint,
    "maintain": maintain,
}


def go_through(history: History, order: Sequence[str], spark: SparkSession | None = None, *, rounds: int = 1) -> None:
    """More rounds, so that each step also meets what all of them have left."""
    history.commits(FIRST_TICKS)
    for _ in range(rounds):
        history.held = history.newest
        looks = held(history.path, ROW, history.held, spark)
        for number, step in enumerate(order, start=1):
            STEPS[step](history)
            # Spark takes a hundred times as long as all others.
            compare(history, looks, spark if rounds > 1 or number == len(order) else None)
            history.commits(2)
    assert min(history.versions_logged()) > 0, "maintenance has removed entries"


def compare(history: History, looks: Mapping[str, Look], spark: SparkSession | None) -> None:
    """Now and as of three earlier ticks, also by readers that were opened earlier, and the changes in between."""
    check_rows(history, None, *history.earlier(), spark=spark)
    for name, look in looks.items():
        if name != "Spark" or spark is not None:
            same(look(), history.rows(history.held), name, "held")
    first = max(history.kept, 1)
    for name, changed in feeds(history.path, ROW, spark).items():
        same(changed(first, history.newest), history.changes(first, history.newest), name, "changes")
    assert not history.damages()


def check_rows(history: History, *versions: int | None, spark: SparkSession | None = None) -> None:
    """:param versions: None is the newest, and what is read without any."""
    for name, read in readers(history.path, ROW, spark).items():
        for version in versions or (None,):
            same(read(version), history.rows(version), name, version)


def same(found: Rows, wanted: Rows, *what: object) -> None:
    assert found == wanted, f"{what}: {found - wanted} too many, {wanted - found} too few"
