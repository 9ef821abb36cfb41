"""Where a source begins, decided from offsets already fetched; asks no broker and no clock."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import BadStart

Offsets = Mapping[int, int]


def from_offsets(topic: str, asked: Mapping[str, int], begin: Offsets, end: Offsets) -> Position:
    """The offsets asked for, each one readable now or the very next; partitions not named start at their begin."""
    chosen = dict(begin)
    for name, offset in asked.items():
        partition = int(name) if name.isdecimal() else -1
        if partition not in begin:
            count = len(begin)
            raise BadStart(
                f"START OFFSET names partition {name} of topic {topic!r}, which has {count}",
                hint=f"at most {count} offset{'s' if count != 1 else ''}, by partition number",
            )
        if not begin[partition] <= offset <= end[partition]:
            raise BadStart(
                f"START OFFSET {offset} is outside topic {topic!r}, partition {partition}, "
                f"which can be read from {begin[partition]} to {end[partition]}",
                hint=f"an offset from {begin[partition]} to {end[partition]}",
            )
        chosen[partition] = offset
    return Position(chosen)


def absolute(timestamp: int, now: int) -> int:
    """Milliseconds since 1970; a negative ``timestamp`` counts back from ``now``."""
    resolved = now + timestamp if timestamp < 0 else timestamp
    if resolved > now:
        raise BadStart(
            f"START TIMESTAMP {timestamp} lies {(resolved - now) / 1000:.0f} s in the future",
            hint="a past time, in milliseconds since 1970, or a negative number, which counts back from now",
        )
    return max(resolved, 0)


def from_times(found: Mapping[int, int | None], end: Offsets) -> Position:
    """``end`` was fetched before ``found``: a record that came in between is then read, not skipped."""
    return Position({partition: end[partition] if at is None else at for partition, at in found.items()})
