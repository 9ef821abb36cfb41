"""Wall-clock time for people to read. Nothing that must be right may depend on it."""

from __future__ import annotations

import time


def wall_ms() -> int:
    return time.time_ns() // 1_000_000
