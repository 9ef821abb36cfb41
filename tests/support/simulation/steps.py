"""What the apps' generators yield, return and raise."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.state import Written
from tests.support.simulation.delta import Delta

if TYPE_CHECKING:
    from tests.support.simulation.world import World

IDLE = "idle"
"""Yielded by an app that has nothing to do now."""
PUTTING = "putting"
"""Yielded by an app that is about to put a log entry: a moment in which to sleep for long."""
Steps = Generator[Any, None, None]
Committing = Generator[Any, None, Written | None]


class PlanAgain(Exception):
    """Another writer has committed since the group was planned."""


class CannotWrite(Exception):
    pass


class NoRoom(Exception):
    """The disk is full: nobody's failure, and nothing that is counted."""


class Unreadable(Exception):
    """The version that was loaded is no longer there to be read."""


class NoIndex(Exception):
    """The index would have to be made first, and a tick does not wait for that."""


def written(world: World, name: CollectionId, delta: Delta, version: int) -> Written:
    entry = delta.entries[version - 1]
    return Written(
        name,
        version,
        rows=entry.change.rows if entry.change else 0,
        hash="",
        tick=world.catalog.numbers[entry.time],
        mz_timestamp=entry.time,
        first_timestamp=entry.first,
    )
