"""Clocks. Wall-clock time is for people to read: what must be right does not depend on it alone."""

from __future__ import annotations

import time


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
