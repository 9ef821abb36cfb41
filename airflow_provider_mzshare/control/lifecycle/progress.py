"""The progress of something that takes long, to be shown: of a wait for a table, of a verification. A value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a wait has come, in offsets; ``total`` is 0 while only a first tick is awaited.

    :param pace: of a backfill, as it was measured: its rate, and the seconds left if they can be told.
    :param hint: the next step, where nothing happens by itself.
    """

    done: int
    total: int
    seconds: float
    note: str
    pace: tuple[float, float | None] | None = None
    hint: str = ""

    @property
    def rate(self) -> float:
        if self.pace is not None:
            return self.pace[0]
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        if self.pace is not None:
            return self.pace[1]
        return (self.total - self.done) / self.rate if self.rate > 0 else None
