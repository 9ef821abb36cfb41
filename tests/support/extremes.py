"""Every field of a record at its extremes, and what tables make of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from tests.support.raw_records import RawRecord

TOPIC_CONFIG = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""Kafka 4 refuses times from far in the future unless it is told not to; before, it took any."""

HELD = (-1, 0, 1, 1_700_000_000_123, -2_208_988_800_000, 253_402_300_799_999)
"""Times that a table holds: from 1900 to 9999, also the -1 of a record without a time."""
NOT_HELD = (
    -2_208_988_800_001,
    253_402_300_800_000,
    1_700_000_000_000_000,  # microseconds taken for milliseconds
    1_700_000_000_000_000_000,  # nanoseconds
    9_223_372_036_854_775,  # the last that Spark has room for, and the next
    9_223_372_036_854_776,
    -9_223_372_036_854_775,
    -9_223_372_036_854_776,
    2**63 - 1,
    -(2**63),
)
ODD_HEADERS = ((b"\xff\xfe", b"\x00"), (b"", b""), (b"twice", None), (b"twice", None))
LARGE = 800_000
"""With the others, about what a broker takes at once by default."""


def records() -> list[RawRecord]:
    """The number in the JSON of a record is its place in the list."""
    times = [*HELD, *NOT_HELD]
    timed = [RawRecord(b'{"n":%d}' % number, timestamp=time) for number, time in enumerate(times)]
    now = 1_700_000_000_123
    shaped = [
        RawRecord(None, None, now),
        RawRecord(b"", b"", now),
        RawRecord(b"\xff" * LARGE, b"\xff" * 10, now),
        RawRecord(b'{"n":%d}' % (len(times) + 3), b"k", now, ODD_HEADERS),
        RawRecord(b'{"n":%d}' % (len(times) + 4), b"k" * 100_000, now, [(b"h%d" % n, None) for n in range(5_000)]),
    ]
    return timed + shaped


def moment(millis: int) -> datetime | None:
    """None for what cannot be held."""
    return None if millis in NOT_HELD else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)
