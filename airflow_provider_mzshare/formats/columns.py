"""JSON values to Arrow columns, strictly: in bulk if all values are good, one by one if some are not.

Knows types, not records or tables. Bulk and one-by-one must agree on every value; docs/reference/decoding.md is the
contract.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import numeric_parts
from airflow_provider_mzshare.formats.base import Column, Errors
from airflow_provider_mzshare.formats.jsontext import BadValue, NumberText, WholeText, canonical_json

_ABSENT = type(None)
_BULK_FAILURES = (BadValue, pa.ArrowException, OverflowError, ValueError, InvalidOperation)

_FEW, _PARTS = 100, 16

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = "[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
_ZONE = "(Z|[+-][0-9]{2}:[0-9]{2})"
_PATTERNS = {"date": _DATE, "timestamp": _DATE + _TIME, "timestamptz": _DATE + _TIME + _ZONE}
_FORMS = {
    "date": "YYYY-MM-DD",
    "timestamp": "YYYY-MM-DDTHH:MM:SS[.ffffff], no zone",
    "timestamptz": "YYYY-MM-DDTHH:MM:SS[.ffffff] and Z or +HH:MM",
}
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31: every reader of the tables can show these
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class _Kind:
    """How one column type converts values: ``bulk`` raises if any value is bad, ``one`` raises BadValue."""

    accepts: frozenset[type]
    bulk: Callable[[Sequence[Any], set[type]], pa.Array]
    one: Callable[[Any], Any]
    arrow: pa.DataType


def convert(values: Sequence[Any], type_name: str) -> Column:
    """Parsed values (None for missing or null) to one column. Bad values are NULL, with an error."""
    return convert_in_parts(
        values, partial(_in_bulk, _kind(type_name)), partial(convert_one_by_one, type_name=type_name)
    )


def convert_in_parts(
    values: Sequence[Any], bulk: Callable[[Sequence[Any]], pa.Array], each: Callable[[Sequence[Any]], Column]
) -> Column:
    """In bulk; if that fails, in smaller and smaller parts, so that only the few values around a bad one are slow."""
    try:
        return Column(bulk(values), {})
    except _BULK_FAILURES:
        pass
    if len(values) <= _FEW:
        return each(values)
    size = -(-len(values) // _PARTS)
    starts = range(0, len(values), size)
    parts = [convert_in_parts(values[start : start + size], bulk, each) for start in starts]
    errors = {start + row: text for start, part in zip(starts, parts, strict=True) for row, text in part.errors.items()}
    return Column(pa.concat_arrays([part.values for part in parts]), errors)


def _in_bulk(kind: _Kind, values: Sequence[Any]) -> pa.Array:
    types = set(map(type, values))
    if not types - {_ABSENT} <= kind.accepts:
        raise BadValue
    return kind.bulk(values, types)


def convert_one_by_one(values: Sequence[Any], type_name: str) -> Column:
    kind = _kind(type_name)
    clean: list[Any] = []
    errors: Errors = {}
    for row, value in enumerate(values):
        try:
            clean.append(None if value is None else _take(kind, type_name, value))
        except BadValue as bad:
            clean.append(None)
            errors[row] = str(bad)
    return Column(pa.array(clean, kind.arrow), errors)


def _take(kind: _Kind, type_name: str, value: Any) -> Any:
    if type(value) not in kind.accepts and not (type(value) is WholeText and int in kind.accepts):
        raise BadValue(f"expected {type_name}, got {_describe(value, kind)}")
    return kind.one(value)


def _describe(value: Any, kind: _Kind) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float, NumberText, WholeText)):
        return "number with a fraction or an exponent" if int in kind.accepts else "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


@cache
def _kind(type_name: str) -> _Kind:
    parts, arrow = numeric_parts(type_name), arrow_type(type_name)
    if parts:
        exact = partial(exact_decimal, type_name, *parts)
        return _Kind(frozenset({int, NumberText}), partial(_bulk_decimals, arrow), exact, arrow)
    if type_name in _PATTERNS:
        bulk = partial(_bulk_times, _PATTERNS[type_name], arrow)
        return _Kind(frozenset({str}), bulk, partial(_one_time, type_name), arrow)
    if pa.types.is_integer(arrow):
        bound = 1 << (arrow.bit_width - 1)
        return _Kind(frozenset({int}), partial(_bulk_plain, arrow), partial(_one_integer, type_name, bound), arrow)
    if pa.types.is_floating(arrow):
        numbers = frozenset({int, float, NumberText})
        return _Kind(numbers, partial(_bulk_floats, arrow), partial(_one_float, type_name, arrow), arrow)
    if type_name == "boolean":
        return _Kind(frozenset({bool}), partial(_bulk_plain, arrow), bool, arrow)
    if type_name == "bytea":
        return _Kind(frozenset({str}), partial(_bulk_each, _one_bytes, arrow), _one_bytes, arrow)
    if type_name == "jsonb":
        anything = frozenset({bool, int, float, str, NumberText, WholeText, dict, list})
        return _Kind(anything, partial(_bulk_each, canonical_json, arrow), json_text, arrow)
    return _Kind(frozenset({str}), partial(_bulk_plain, arrow), _one_text, arrow)


# ── in bulk ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _bulk_plain(arrow: pa.DataType, values: Sequence[Any], types: set[type]) -> pa.Array:
    return pa.array(values, arrow)


def _bulk_each(one: Callable[[Any], Any], arrow: pa.DataType, values: Sequence[Any], types: set[type]) -> pa.Array:
    return pa.array([None if value is None else one(value) for value in values], arrow)


def _bulk_floats(arrow: pa.DataType, values: Sequence[Any], types: set[type]) -> pa.Array:
    if not types <= {float, _ABSENT}:
        values = [None if value is None else float(value) for value in values]
    column = pa.array(values, pa.float64()).cast(arrow)
    if pc.any(pc.is_inf(column)).as_py():
        raise OverflowError
    return column


def _bulk_decimals(arrow: pa.DataType, values: Sequence[Any], types: set[type]) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], arrow)


def _bulk_times(pattern: str, arrow: pa.DataType, values: Sequence[Any], types: set[type]) -> pa.Array:
    """Arrow's own parser takes more forms than ours, so the pattern comes first."""
    texts = pa.array(values, pa.string())
    if pc.all(pc.match_substring_regex(texts, f"^{pattern}$")).as_py() is False:
        raise BadValue
    return in_known_years(texts.cast(arrow))


def in_known_years(column: pa.Array) -> pa.Array:
    """Raise OverflowError if a date or time is outside the years 0001 to 9999."""
    days = pa.types.is_date(column.type)
    numbers = column.view(pa.int32() if days else pa.int64())
    low, high = (FIRST_DAY, LAST_DAY) if days else (FIRST_DAY * _DAY_US, (LAST_DAY + 1) * _DAY_US - 1)
    reached = pc.min_max(numbers).as_py()
    if reached["min"] is not None and not (low <= reached["min"] and reached["max"] <= high):
        raise OverflowError
    return column


# ── one by one ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _one_integer(type_name: str, bound: int, value: Any) -> int:
    if type(value) is WholeText or not -bound <= value < bound:
        raise BadValue(f"out of range for {type_name}")
    return int(value)


def _one_float(type_name: str, arrow: pa.DataType, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    with np.errstate(over="ignore"):
        if math.isinf(np.float32(number) if arrow.bit_width == 32 else number):
            raise BadValue(f"out of range for {type_name}")
    return number


def exact_decimal(type_name: str, precision: int, scale: int, value: Any) -> Decimal:
    """The exact number or an error: nothing is rounded. Trailing zeros do not count."""
    try:
        sign, digits, exponent = Decimal(value).as_tuple()
    except InvalidOperation:
        raise BadValue(f"out of range for {type_name}") from None
    text = "".join(map(str, digits))
    significant = text.rstrip("0")
    if not significant:
        return Decimal(0)
    shift = int(exponent) + len(text) - len(significant)
    if shift < -scale:
        raise BadValue(f"more than {scale} digits after the decimal point")
    if len(significant) + shift > precision - scale:
        raise BadValue(f"out of range for {type_name}")
    return Decimal((sign, tuple(map(int, significant + "0" * (shift + scale))), -scale))


def _one_text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValue("half of a surrogate pair, which is no character") from None
    return value


def json_text(value: Any) -> str:
    return _one_text(canonical_json(value))


def _one_bytes(value: str) -> bytes:
    """Base64 with padding. Encoded again it must be the same text: some decoders let stray bits and characters pass."""
    try:
        raw = value.encode("ascii")
        decoded = binascii.a2b_base64(raw)
    except ValueError:
        raise BadValue("not base64") from None
    if base64.b64encode(decoded) != raw:
        raise BadValue("not base64")
    return decoded


def _one_time(type_name: str, value: str) -> datetime.date:
    if not re.fullmatch(_PATTERNS[type_name], value):
        raise BadValue(f"not a {type_name} ({_FORMS[type_name]})")
    try:
        if type_name == "date":
            return datetime.date(*map(int, value.split("-")))
        return _parse_datetime(value)
    except (ValueError, OverflowError):
        raise BadValue(f"no such {type_name}") from None


def _parse_datetime(value: str) -> datetime.datetime:
    """A text of the right form; days, hours and zones that do not exist raise."""
    year, month, day = map(int, value[:10].split("-"))
    hour, minute, second = map(int, value[11:19].split(":"))
    fraction = re.match("[.]([0-9]+)", value[19:])
    micros = int(fraction[1].ljust(6, "0")) if fraction else 0
    moment = datetime.datetime(year, month, day, hour, minute, second, micros)
    zone = re.search("([+-])([0-9]{2}):([0-9]{2})$", value[19:])
    if zone:
        hours, minutes = int(zone[2]), int(zone[3])
        if hours > 23 or minutes > 59:
            raise ValueError
        offset = datetime.timedelta(hours=hours, minutes=minutes)
        moment = moment - offset if zone[1] == "+" else moment + offset
    return moment.replace(tzinfo=datetime.timezone.utc) if value[-1] == "Z" or zone else moment
