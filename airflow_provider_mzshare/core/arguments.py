"""What callers give: checked by type and size before anything is asked, so that each error names what is wrong.

Knows no tables, and takes nothing for something else: text is no number, and a number is no name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from math import nan
from operator import index
from threading import TIMEOUT_MAX
from typing import Any, TypeVar

from airflow_provider_mzshare.errors import TerminalError

T = TypeVar("T")
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
"""Databases and Arrow keep whole numbers in 64 bits."""
LONGEST_SECONDS = TIMEOUT_MAX
"""For longer nobody can wait, some 292 years."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NUMBER = "a whole number of 64 bits"
_MOMENT = f"a time with a zone, as datetime.now(timezone.utc) has one, or an mz_timestamp, {_NUMBER}"
_SHOWN_BITS, _SHOWN_CHARACTERS = 128, 80


class BadArgument(TerminalError):
    """What a caller gave for an argument is of the wrong type, or too large. ``wanted``: what it takes."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name, self.value, self.wanted = name, value, wanted
        super().__init__(f"{name} cannot be {_shown(value)}: it takes {wanted}")


def _shown(value: object) -> str:
    """As Python writes it, as far as that is of any use."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def whole(name: str, value: Any, *, least: int = INT64_MIN, wanted: str = _NUMBER) -> int:
    """A whole number, also one of numpy's."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= INT64_MAX:
        raise BadArgument(name, value, wanted if least == INT64_MIN else f"{wanted}, {least} or more")
    return number


def moment(name: str, value: Any) -> int:
    """A time in milliseconds; of one between two of them, the one before."""
    if not isinstance(value, datetime):
        return whole(name, value, wanted=_MOMENT)
    if value.utcoffset() is None:
        raise BadArgument(name, value, _MOMENT)
    return milliseconds(value)


def milliseconds(time: datetime) -> int:
    """Of a time with a zone, exactly. Those of Airflow have differences of their own, which are no timedeltas."""
    return datetime.__sub__(time, _EPOCH) // timedelta(milliseconds=1)


def seconds(name: str, value: Any) -> float:
    """A span of time, as long as anybody can wait."""
    try:
        number = nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = nan
    if not 0 <= number <= LONGEST_SECONDS:
        raise BadArgument(name, value, f"a number of seconds, from 0 to {LONGEST_SECONDS:.0f}")
    return number


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadArgument(name, value, "text")
    return value


def given(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    """Of an argument that may be left out: None is not checked."""
    return None if value is None else check(name, value)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadArgument(name, value, "True or False")
    return value


def names(name: str, value: Any) -> list[str]:
    """Several names. One alone is text, and would count as its letters."""
    found: list[Any] = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [None]
    if not all(isinstance(each, str) for each in found):
        raise BadArgument(name, value, "a list of names")
    return found
