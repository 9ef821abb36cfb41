"""The time of day in which batches may start, in UTC; it may go over midnight."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone

from airflow_provider_mzshare.errors import TerminalError


@dataclass(frozen=True)
class Window:
    """From ``start`` to before ``end``; the same time twice, or none at all, is the whole day."""

    start: time = time()
    end: time = time()

    @classmethod
    def parse(cls, start: str | None, end: str | None) -> Window:
        """As ``22:00`` and ``04:30``; both or none."""
        if bool(start) != bool(end):
            raise TerminalError(
                "a window needs a start and an end", hint="give both, such as 22:00 and 04:30, or neither"
            )
        return cls(_time(start), _time(end)) if start and end else cls()

    def is_open(self, now: datetime) -> bool:
        at = now.astimezone(timezone.utc).time()
        if self.start == self.end:
            return True
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end

    def opens(self, now: datetime) -> datetime:
        """The next time that it opens, after now."""
        utc = now.astimezone(timezone.utc)
        today = datetime.combine(utc.date(), self.start, timezone.utc)
        return today if today > utc else today + timedelta(days=1)


def _time(text: str) -> time:
    try:
        found = time.fromisoformat(text.strip())
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None:
        raise TerminalError(
            f"{text!r} is not a time of day in UTC", hint="hours and minutes without a time zone, such as 22:00"
        )
    return found
