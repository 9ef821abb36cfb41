"""Option words and the settings they stand for: values from literals, checked, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlglot import exp

from airflow_provider_mzshare.control.sql.durations import format_duration, parse_duration
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.core.specs import LoadGeneratorSpec, SourceSettings


@dataclasses.dataclass(frozen=True)
class Setting:
    """``milliseconds`` is how many of them one unit of the field is; None for a plain number."""

    field: str
    milliseconds: int | None = None
    unit: str = ""
    model: type[BaseModel] = SourceSettings
    """Whose field it is, which says what is allowed, and what else that needs."""
    others: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def read(self, option: str, literal: str) -> int | float:
        """The field's value. Raises ValueError with what is wrong."""
        value = self._number(option, literal)
        try:
            self.model.model_validate({**self.others, self.field: value})
        except ValidationError as error:
            wrong = error.errors()[0]["msg"].removeprefix("Input should be ")
            raise ValueError(f"{option} must be {wrong}{self.unit}") from None
        return value

    def _number(self, option: str, literal: str) -> int | float:
        if self.milliseconds is None:
            return int(literal)
        try:
            duration = parse_duration(literal)
        except ValueError as error:
            raise ValueError(f"{option} '{shown(literal)}' {error}") from None
        return duration if self.milliseconds == 1 else duration / self.milliseconds

    def write(self, value: int | float) -> exp.Literal:
        if self.milliseconds is None:
            return exp.Literal(this=str(value), is_string=False)
        return exp.Literal.string(format_duration(round(value * self.milliseconds)))


def _generator(name: str, milliseconds: int | None = None, unit: str = "") -> Setting:
    return Setting(name, milliseconds, unit, LoadGeneratorSpec, {"generator": "counter"})


SOURCE_SETTINGS = {
    "TRIGGER INTERVAL": Setting("trigger_interval_ms", 1, " milliseconds"),
    "MAX RECORDS PER TICK": Setting("max_records_per_tick"),
    "IDLE TICK INTERVAL": Setting("idle_tick_seconds", 1_000, " seconds"),
    "BACKFILL RATE": Setting("backfill_rate"),
    "CUTOVER WAIT": Setting("cutover_wait_ms", 1, " milliseconds"),
}

GENERATOR_OPTIONS = {
    "SEED": _generator("seed"),
    "TICK INTERVAL": _generator("tick_interval_ms", 1, " millisecond"),
    "BATCH SIZE": _generator("batch_size"),
    "UP TO": _generator("up_to"),
    "KEYS": _generator("keys"),
    "VALUE SIZE": _generator("value_size"),
    "PARTITIONS": _generator("partitions"),
}
_ALL_HAVE = ("SEED", "TICK INTERVAL", "BATCH SIZE", "UP TO")
GENERATORS = {"COUNTER": _ALL_HAVE, "AUCTION": _ALL_HAVE, "KEY VALUE": tuple(GENERATOR_OPTIONS)}
"""Which options each generator has."""

TABLE_SETTINGS = {"ON DECODE ERROR": "on_decode_error", "RETAIN HISTORY": "retain_history_seconds"}
"""Those of a table that can be changed later, and their fields."""

COLUMN_OPTIONS = {"TEXT COLUMNS": "text_columns", "EXCLUDE COLUMNS": "exclude_columns"}
