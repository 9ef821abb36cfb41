"""How a source and a table are, as a status shows it and a wait decides by it. Values; ``StatusReader`` fills them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_mzshare.control.catalog.queries.health import Health
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
    """The position as people know it, where that is not by its numbers."""


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
    """Offsets per second: the source's, or while it is brought up its backfill's."""
    lag: int | None = None
    """Offsets behind the upstream."""
    generation: int = 1
    backfill: str | None = None
    backfill_job: str | None = None
    backfill_rate: float | None = None
    new_generation: int | None = None
    """The one that is to replace the current one, and how that is."""
    new_status: str | None = None
    done: int | None = None
    """Offsets that the backfill has gone through, of ``total`` up to the end of the log."""
    total: int | None = None
    ticks_behind: int | None = None
    """How far what is brought up is behind the source's log, in ticks and in offsets."""
    behind: int | None = None
    seconds_left: float | None = None
    held_up: str = ""
    """What keeps its backfill from going on."""
    location: str = ""
    """Its Delta table, relative to the warehouse."""
    queue_place: int | None = None
    """Of its backfill among all that wait for an app; 1 is next, of ``queue_length``."""
    queue_length: int | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
