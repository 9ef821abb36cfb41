"""Values as Postgres writes them, to Arrow columns: in bulk if all values are good, one by one if some are not.

In the form of sessions with DateStyle ISO, TimeZone UTC and bytea_output hex. What a type of Postgres holds and ours
does not (NaN in a numeric, infinite times, other years) is an error; nothing is rounded or cut off.
"""

from __future__ import annotations

import binascii
import datetime
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import MAX_PRECISION, numeric_parts
from airflow_provider_mzshare.formats.base import Column, Errors
from airflow_provider_mzshare.formats.columns import convert_in_parts, exact_decimal, in_known_years, json_text
from airflow_provider_mzshare.formats.jsontext import BadValue, JsonParser

_DATE = "([0-9]{4,})-([0-9]{2})-([0-9]{2})"
_TIME = " ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.]([0-9]{1,6}))?"
_ZONE = "([+-])([0-9]{2})(?::([0-9]{2})(?::([0-9]{2}))?)?"
_PATTERNS = {
    "date": re.compile(f"{_DATE}( BC)?"),
    "timestamp": re.compile(f"{_DATE}{_TIME}( BC)?"),
    "timestamptz": re.compile(f"{_DATE}{_TIME}{_ZONE}( BC)?"),
}
_NUMBER = re.compile("-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_YEARS = "outside the years 0001 to 9999"
_DIGITS = np.full(256, 16, np.uint8)
_DIGITS[list(b"0123456789abcdef")] = range(16)
_PARSER = JsonParser(exact=True)


def typed(texts: pa.Array, type_name: str) -> Column:
    """Texts to one column. Bad values are NULL, with an error."""
    if type_name == "text":
        return Column(texts.cast(pa.string()), {})
    arrow = arrow_type(type_name)
    return convert_in_parts(texts, _bulk(type_name, arrow), partial(_each, _one(type_name, arrow), arrow))


def _each(one: Callable[[str], Any], arrow: pa.DataType, texts: Sequence[Any]) -> Column:
    clean: list[Any] = []
    errors: Errors = {}
    for row, text in enumerate(texts.to_pylist()):  # type: ignore[attr-defined]
        try:
            clean.append(None if text is None else one(text))
        except BadValue as bad:
            clean.append(None)
            errors[row] = str(bad)
    return Column(pa.array(clean, arrow), errors)


# ── in bulk: raises if any value is bad, or may be ────────────────────────────────────────────────────────────────────


def _bulk(type_name: str, arrow: pa.DataType) -> Callable[[Any], pa.Array]:
    if type_name in _PATTERNS:
        return lambda texts: in_known_years(texts.cast(arrow))
    if pa.types.is_integer(arrow):
        return partial(_bulk_whole, arrow)
    if pa.types.is_floating(arrow):
        return partial(_bulk_floats, arrow)
    if pa.types.is_decimal(arrow):
        return partial(_bulk_decimals, arrow)
    others = {"boolean": _bulk_booleans, "bytea": _bulk_bytes, "jsonb": _bulk_json}
    return others[type_name]


def _bulk_whole(arrow: pa.DataType, texts: pa.Array) -> pa.Array:
    """Arrow also reads 0x10, which no number of Postgres looks like."""
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise BadValue
    return texts.cast(arrow)


def _bulk_floats(arrow: pa.DataType, texts: pa.Array) -> pa.Array:
    """What Arrow cannot tell from infinity is left to the way one by one."""
    column = texts.cast(arrow)
    if pc.all(pc.is_finite(column)).as_py() is False:
        odd = texts.filter(pc.invert(pc.is_finite(column)))
        if pc.all(pc.is_in(odd, pa.array(list(_NOT_FINITE)))).as_py() is False:
            raise BadValue
    return column


def _bulk_decimals(arrow: pa.DataType, texts: pa.Array) -> pa.Array:
    """Arrow takes numbers beyond 128 bits for others, so longer texts are left to the way one by one."""
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > MAX_PRECISION:
        raise BadValue
    if pc.any(pc.match_substring(texts, "e", ignore_case=True)).as_py():
        raise BadValue
    return texts.cast(arrow)


def _bulk_booleans(texts: pa.Array) -> pa.Array:
    column = pc.equal(texts, "t")
    if pc.all(pc.or_(column, pc.equal(texts, "f"))).as_py() is False:
        raise BadValue
    return column


def _bulk_bytes(texts: pa.Array) -> pa.Array:
    r"""``\x`` and two digits for each byte, so every text has an even length: pairs of all texts are read at once."""
    count = len(texts)
    if texts.null_count == count:
        return pa.nulls(count, pa.binary())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + count + 1].astype(np.int64)
    there = np.asarray(texts.is_valid())
    lengths = np.diff(ends)
    if not there.all() and lengths[~there].any():
        raise BadValue
    if not (lengths[there] >= 2).all() or (lengths % 2).any():
        raise BadValue
    pairs = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].reshape(-1, 2)
    begins = (ends[:-1][there] - ends[0]) // 2
    if not (pairs[begins] == (ord("\\"), ord("x"))).all():
        raise BadValue
    digits = _DIGITS[pairs]
    digits[begins] = 0
    if (digits > 15).any():
        raise BadValue
    whole = np.delete(digits[:, 0] << 4 | digits[:, 1], begins)
    after = np.concatenate([[0], np.cumsum(np.where(there, lengths // 2 - 1, 0))]).astype(np.int32)
    bits = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [bits, pa.py_buffer(after), pa.py_buffer(whole)])


def _bulk_json(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else _json(text) for text in texts.to_pylist()], pa.string())


# ── one by one: raises BadValue ───────────────────────────────────────────────────────────────────────────────────────


def _one(type_name: str, arrow: pa.DataType) -> Callable[[str], Any]:
    parts = numeric_parts(type_name)
    if parts:
        return partial(_one_decimal, type_name, *parts)
    if type_name in _PATTERNS:
        return partial(_one_time, type_name)
    if pa.types.is_integer(arrow):
        return partial(_one_whole, type_name, 1 << (arrow.bit_width - 1))
    if pa.types.is_floating(arrow):
        return partial(_one_float, type_name, arrow)
    return {"boolean": _one_boolean, "bytea": _one_bytes, "jsonb": _json}[type_name]


def _json(text: str) -> str:
    """The value null stays one: it is not the NULL of SQL."""
    return json_text(_PARSER.parse_one(text))


def _one_boolean(text: str) -> bool:
    if text not in ("t", "f"):
        raise BadValue("not a boolean")
    return text == "t"


def _one_whole(type_name: str, bound: int, text: str) -> int:
    if not re.fullmatch("-?[0-9]+", text):
        raise BadValue(f"no {type_name}")
    if len(text) > 20 or not -bound <= int(text) < bound:
        raise BadValue(f"out of range for {type_name}")
    return int(text)


def _one_float(type_name: str, arrow: pa.DataType, text: str) -> float:
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if not _NUMBER.fullmatch(text):
        raise BadValue(f"no {type_name}")
    number: float = pa.array([text]).cast(arrow)[0].as_py()
    if math.isinf(number):
        raise BadValue(f"out of range for {type_name}")
    return number


def _one_decimal(type_name: str, precision: int, scale: int, text: str) -> Any:
    if text in _NOT_FINITE:
        raise BadValue(f"NaN or infinite, which {type_name} cannot be")
    if not _NUMBER.fullmatch(text):
        raise BadValue(f"no {type_name}")
    return exact_decimal(type_name, precision, scale, text)


def _one_bytes(text: str) -> bytes:
    if not re.fullmatch(r"\\x(?:[0-9a-f]{2})*", text):
        raise BadValue("not bytea in hex")
    return binascii.unhexlify(text[2:])


def _one_time(type_name: str, text: str) -> Any:
    if text in ("infinity", "-infinity"):
        raise BadValue(f"infinite, which no {type_name} is here")
    match = _PATTERNS[type_name].fullmatch(text)
    if match is None:
        raise BadValue(f"no {type_name}")
    year, month, day, *clock, before_christ = match.groups()
    if before_christ or not 1 <= int(year) <= 9999:
        raise BadValue(_YEARS)
    try:
        date = datetime.date(int(year), int(month), int(day))
        return date if type_name == "date" else _moment(date, clock)
    except OverflowError:
        raise BadValue(_YEARS) from None
    except ValueError:
        raise BadValue(f"no such {type_name}") from None


def _moment(date: datetime.date, clock: Sequence[str | None]) -> datetime.datetime:
    """:param clock: hours, minutes, seconds, their fraction, and of a zone its sign, hours, minutes and seconds."""
    hour, minute, second, fraction, *zone = clock
    micros = int((fraction or "").ljust(6, "0"))
    time = datetime.time(int(hour or 0), int(minute or 0), int(second or 0), micros)
    moment = datetime.datetime.combine(date, time)
    if not zone:
        return moment
    sign, *parts = zone
    hours, minutes, seconds = (int(part or 0) for part in parts)
    apart = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    utc = moment - apart if sign == "+" else moment + apart
    return utc.replace(tzinfo=datetime.timezone.utc)
