"""Sizes as people write them (``500MB``, ``10 GB``) to whole bytes and back. Units are powers of 1024."""

from __future__ import annotations

import re

_UNITS = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_NAMES = {unit.lower(): count for unit, count in _UNITS.items()}
_SIZE = re.compile(r"\s*([0-9]{1,18})\s*([a-z]{1,2})\s*", re.ASCII | re.IGNORECASE)
MAX_BYTES = 1 << 60


def parse_size(text: str) -> int:
    """Bytes. Raises ValueError with what is wrong."""
    found = _SIZE.fullmatch(text)
    if found is None or found[2].lower() not in _NAMES:
        raise ValueError(f"is not a size such as '500MB' or '10GB'; units are {', '.join(_UNITS)}")
    count = int(found[1]) * _NAMES[found[2].lower()]
    if count > MAX_BYTES:
        raise ValueError(f"is larger than {format_size(MAX_BYTES)}")
    return count


def format_size(count: int) -> str:
    """In the largest unit that divides it, so that it reads back to the same number."""
    fitting = [unit for unit, size in _UNITS.items() if count and count % size == 0]
    unit = fitting[-1] if fitting else "B"
    return f"{count // _UNITS[unit]}{unit}"
