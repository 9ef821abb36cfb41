"""Durations as people write them (``500ms``, ``1 day``) to whole milliseconds and back; no clock."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip
_SHORT = {
    "ms": "millisecond", "s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour",
    "d": "day", "w": "week",
}  # fmt: skip
_PRINTED = ("day", "hour", "minute", "second", "millisecond")
_PART = re.compile(r"\s*([0-9]{1,13}(?:\.[0-9]{1,6})?)\s*([a-z]{1,12})\s*", re.ASCII | re.IGNORECASE)
MAX_MS = 100 * 365 * _UNITS["day"]


def parse_duration(text: str) -> int:
    """Milliseconds. Raises ValueError with what is wrong."""
    total, at = Decimal(0), 0
    while match := _PART.match(text, at):
        total += Decimal(match[1]) * _unit(match[2].lower())
        at = match.end()
    if at < len(text) or not at:
        raise ValueError("is not a duration such as '500ms', '10s' or '1 day'")
    if total != int(total):
        raise ValueError("is not a whole number of milliseconds")
    if total > MAX_MS:
        raise ValueError("is longer than 100 years")
    return int(total)


def format_duration(milliseconds: int) -> str:
    """In the largest unit that divides it, so that it reads back to the same number."""
    if not milliseconds:
        return "0 seconds"
    unit = next(unit for unit in _PRINTED if milliseconds % _UNITS[unit] == 0)
    count = milliseconds // _UNITS[unit]
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _unit(word: str) -> int:
    name = _SHORT.get(word) or (word if word in _UNITS else word.removesuffix("s"))
    if name not in _UNITS:
        raise ValueError(f"has the unknown unit {word}; there are: {', '.join(_UNITS)}")
    return _UNITS[name]
