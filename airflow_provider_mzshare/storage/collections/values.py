"""Rows of Arrow as Python's values. What Python's dates cannot hold is text, as PostgreSQL writes it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DAY_MICROS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""


def python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = [python_values(column) for column in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def python_values(column: pa.Array) -> list[Any]:
    if not _is_date(column) or _is_in_reach(column):
        values: list[Any] = column.to_pylist()
        return values
    return [
        value.as_py() if not value.is_valid or _is_in_reach(pa.array([value])) else far_text(value) for value in column
    ]


def with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same, with text columns for dates and times that Python's dates cannot hold."""
    columns = list(batch.columns)
    for number, column in enumerate(columns):
        values = python_values(column) if _is_date(column) and not _is_in_reach(column) else None
        if values is not None:
            near = column.cast(pa.string()).to_pylist()
            texts = [far if isinstance(far, str) else text for far, text in zip(values, near, strict=True)]
            columns[number] = pa.array(texts, pa.string())
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def far_text(value: pa.Scalar) -> str:
    """``10000-01-01 00:00:00+00``, ``0044-03-15 BC``; of any date or time, near or far."""
    if pa.types.is_date32(value.type):
        return _told(value.cast(pa.int32()).as_py(), "")
    micros = value.cast(pa.timestamp("us", value.type.tz)).cast(pa.int64()).as_py()
    days, rest = divmod(micros, _DAY_MICROS)
    seconds, fraction = divmod(rest, 1_000_000)
    parts = f"{f'.{fraction:06d}'.rstrip('0')}" if fraction else ""
    time = f" {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{parts}{'+00' if value.type.tz else ''}"
    return _told(days, time)


def _told(days: int, time: str) -> str:
    year, month, day = _civil(days)
    # There is no year 0: the one before 1 is 1 BC.
    return f"{year:04d}-{month:02d}-{day:02d}{time}" if year > 0 else f"{1 - year:04d}-{month:02d}-{day:02d}{time} BC"


def _civil(days: int) -> tuple[int, int, int]:
    """Days since 1970 as year, month and day of the Gregorian calendar without an end at either side.

    Years are taken to begin in March: the leap day is then a year's last, and 400 years always have 146,097 days.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _is_date(column: pa.Array) -> bool:
    return bool(pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type))


def _is_in_reach(column: pa.Array) -> bool:
    if pa.types.is_date32(column.type):
        ends, first, last = pc.min_max(column.cast(pa.int32())).as_py(), _FIRST_DAY, _LAST_DAY
    else:
        ends = pc.min_max(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())).as_py()
        first, last = _FIRST_DAY * _DAY_MICROS, (_LAST_DAY + 1) * _DAY_MICROS - 1
    return ends["min"] is None or (first <= ends["min"] and ends["max"] <= last)
