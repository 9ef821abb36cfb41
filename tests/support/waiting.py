"""Wait for a condition with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_until(question: Callable[[], Answer], timeout: float, what: str, *, every: float = 0.05) -> Answer:
    """Return the first true answer; fail with ``what`` and the last answer when there is none in time."""
    deadline = time.monotonic() + timeout
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout:g} s, last answer {answer!r}")
        time.sleep(every)
