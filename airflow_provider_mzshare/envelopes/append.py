"""ENVELOPE NONE: every record is a row of its own, and none is ever changed. Any table can have it."""

from __future__ import annotations

from collections.abc import Collection


class Append:
    name = "none"
    appends = True

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        return None


APPEND = Append()
