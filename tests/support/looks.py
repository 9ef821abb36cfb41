"""Waits inside an event loop, and the looks at a catalog that happen meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


async def until(question: Callable[[], Any], timeout: float = 20, what: str = "the condition") -> None:
    deadline = time.monotonic() + timeout
    while not question():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout:g} s")
        await asyncio.sleep(0.01)


@contextmanager
def looks(word: str = "source_name") -> Iterator[list[float]]:
    """When a statement with this word was run, by any engine of this process."""
    times: list[float] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if word in statement:
            times.append(time.monotonic())

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield times
    finally:
        event.remove(Engine, "before_cursor_execute", note)
