"""When an update of a watched table is reported: levels are compared with the last report. No input or output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_mzshare.control.catalog.queries.uppers import TableUpper
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.events import TableUpdate


@dataclass(frozen=True)
class Seen:
    """The last report."""

    table_id: str
    generation: int
    tick: int
    rows: int

    @classmethod
    def of(cls, table: TableUpper) -> Seen:
        return cls(table.table_id, table.generation, table.tick, table.rows)

    @classmethod
    def from_json(cls, value: Any) -> Seen | None:
        """None if there is none, or if another version wrote it."""
        if not isinstance(value, Mapping) or not cls.__dataclass_fields__.keys() <= value.keys():
            return None
        return cls(**{name: value[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Wish:
    """The condition to wait for: at most one of the three, or every new row."""

    every_ticks: int | None = None
    mz_timestamp: int | None = None
    position: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        given = [value for value in asdict(self).values() if value is not None]
        if len(given) > 1:
            raise ValueError("give only one of every_ticks, mz_timestamp and position")
        if self.every_ticks is not None and self.every_ticks < 1:
            raise ValueError(f"every_ticks must be a whole number, 1 or more, not {self.every_ticks!r}")
        Position(self.position or {})

    def is_met(self, table: TableUpper, seen: Seen | None) -> bool:
        """For a new table with the same name, nothing has been reported yet."""
        told = seen if seen is not None and seen.table_id == table.table_id else None
        if self.mz_timestamp is not None:
            return told is None and table.mz_timestamp >= self.mz_timestamp
        if self.position is not None:
            return told is None and Position(self.position) <= table.position
        if self.every_ticks is not None:
            return table.tick // self.every_ticks > (told.tick // self.every_ticks if told else 0)
        before = told.rows if told is not None and told.generation == table.generation else 0
        return table.rows > before

    def update(self, table: TableUpper) -> TableUpdate:
        return TableUpdate(table.table, table.tick, table.mz_timestamp, table.rows)

    @property
    def key(self) -> str:
        """A key of the condition: several watchers of one asset remember their reports separately."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
