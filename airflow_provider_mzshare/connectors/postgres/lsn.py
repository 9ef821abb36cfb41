"""Places in Postgres' log, LSNs: whole numbers here, ``0/16B3748`` in Postgres. Travels; standard library only."""

from __future__ import annotations

import re

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def show_lsn(number: int) -> str:
    """As Postgres writes it."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def read_lsn(text: str) -> int:
    """Raise ValueError unless ``text`` is an LSN as Postgres writes it."""
    match = _LSN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no LSN")
    return int(match[1], 16) << 32 | int(match[2], 16)
