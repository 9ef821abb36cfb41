"""The status of a source and of a table, for people and for waits. Values; ``StatusReader`` fills them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_mzshare.control.catalog.queries.health import Health
from airflow_provider_mzshare.control.lifecycle.holding import ShownHold
from airflow_provider_mzshare.core.positions import Position


@dataclass(frozen=True)
class SourceStatus:
    id: str
    name: str
    health: Health
    reason: str
    hint: str
    job: str | None
    pid: int | None
    tables: int
    tick: int | None
    mz_timestamp: int | None
    position: Position
    age_seconds: float | None
    rate: float | None
    lag: int | None = None
    """Offsets behind the upstream; None when it was not asked or did not answer."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """The position as people write it, if they do not write the plain numbers."""


@dataclass(frozen=True)
class TableStatus:
    id: str
    name: str
    source: str
    status: str
    reason: str
    hint: str
    rows: int
    errors: int
    since: int | None
    upper: int | None
    position: Position
    rate: float | None
    """Offsets per second of the source, or of the table's backfill while it is brought up."""
    lag: int | None = None
    """Offsets behind the upstream."""
    generation: int = 1
    backfill: str | None = None
    backfill_job: str | None = None
    backfill_rate: float | None = None
    new_generation: int | None = None
    """The generation that is to replace the current one; ``new_status`` is its status."""
    new_status: str | None = None
    done: int | None = None
    """Offsets that the backfill has gone through, of ``total`` up to the end of the log."""
    total: int | None = None
    ticks_behind: int | None = None
    """How far the backfill is behind the source's log, in ticks; ``behind`` in offsets."""
    behind: int | None = None
    seconds_left: float | None = None
    held_up: str = ""
    """What keeps its backfill from going on."""
    location: str = ""
    """Its Delta table, relative to the warehouse."""
    queue_place: int | None = None
    """The place of its backfill in the queue for an app; 1 is next, of ``queue_length``."""
    queue_length: int | None = None
    key: tuple[str, ...] = ()
    """The columns that tell its rows apart; none where no row is ever changed."""
    shown: Mapping[str, str] = field(default_factory=dict)
    holds: Sequence[ShownHold] = ()
    """Who keeps its history, and what was dropped of that and is not forgotten."""
