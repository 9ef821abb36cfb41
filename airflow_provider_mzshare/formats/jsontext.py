"""JSON texts to Python values, strictly and the same on every Python; knows nothing of columns or tables.

Error texts name what is wrong and never quote the record: they are stored beside the raw value and compared by hash,
so they must not depend on the words or positions that one version of the json module reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import Any

MAX_DEPTH = 128
"""Levels of nesting. A fixed limit, because Python's own depends on its version and on the stack."""

SURELY_FLAT = 2 * MAX_DEPTH
"""A text of at most so many characters or bytes cannot be too deep, because every level needs two brackets."""

_INT_DIGITS = 600  # below the lowest limit for int() that Python allows to set
_SPACE = " \t\n\r"
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


class BadValue(ValueError):
    """A record or field that does not decode; the text says why."""


class NumberText(str):
    """A number with a fraction or an exponent, as it was sent: floats would lose digits."""

    __slots__ = ()


class WholeText(str):
    """A whole number longer than any column holds, as it was sent."""

    __slots__ = ()


def _refuse_constant(name: str) -> Any:
    raise BadValue("NaN and Infinity are not JSON")


def _whole(text: str) -> int | WholeText:
    return int(text) if len(text) <= _INT_DIGITS else WholeText(text)


def _scanner(decoder: JSONDecoder) -> Callable[[str | None, int], tuple[Any, int]]:
    """The scanner in C without the checks around it, which double its time: the parser has checks of its own."""
    scan: Callable[[str | None, int], tuple[Any, int]] = decoder.scan_once  # type: ignore[attr-defined]
    return scan


class JsonParser:
    """``exact`` keeps numbers with a fraction as NumberText: for columns of numeric or jsonb."""

    def __init__(self, *, exact: bool) -> None:
        parse_float = NumberText if exact else None
        self._scan = _scanner(JSONDecoder(parse_float=parse_float, parse_constant=_refuse_constant))
        self._scan_any_length = _scanner(
            JSONDecoder(parse_float=parse_float, parse_int=_whole, parse_constant=_refuse_constant)
        )

    def parse_all(self, texts: Sequence[str | None]) -> tuple[list[Any], dict[int, str]]:
        """The values, None where there is none, and what is wrong by row."""
        scan = self._scan
        try:
            lengths = list(map(len, texts))  # type: ignore[arg-type]
            if max(lengths) <= SURELY_FLAT or not any(map(_may_be_deep, texts)):
                # No map(): the scanner signals "no value here" with StopIteration, which would end it silently.
                pairs = [scan(text, 0) for text in texts]
                if [end for _, end in pairs] == lengths:
                    return [value for value, _ in pairs], {}
        except (StopIteration, ValueError, TypeError):
            pass
        return self._parse_each(texts)

    def _parse_each(self, texts: Sequence[str | None]) -> tuple[list[Any], dict[int, str]]:
        values: list[Any] = []
        errors: dict[int, str] = {}
        for row, text in enumerate(texts):
            try:
                values.append(self.parse_one(text))
            except BadValue as bad:
                values.append(None)
                errors[row] = str(bad)
        return values, errors

    def parse_one(self, text: str | None) -> Any:
        if text is None:
            raise BadValue("value is NULL")
        start = len(text) - len(text.lstrip(_SPACE))
        if start == len(text):
            raise BadValue("value is blank" if text else "value is empty")
        if text[0] == "\ufeff":
            raise BadValue("byte order mark before the JSON value")
        if _may_be_deep(text) and _depth(text) > MAX_DEPTH:
            raise BadValue(f"nested deeper than {MAX_DEPTH} levels")
        try:
            value, end = self._scan_any_length(text, start)
        except BadValue:
            raise
        except (StopIteration, ValueError):
            raise BadValue("not valid JSON") from None
        if text[end:].strip(_SPACE):
            raise BadValue("text after the JSON value")
        return value


def _may_be_deep(text: str | None) -> bool:
    return text is not None and len(text) > SURELY_FLAT and text.count("{") + text.count("[") > MAX_DEPTH


def is_too_deep(raw: bytes) -> bool:
    """Whether a record in UTF-8 is nested too deeply."""
    if len(raw) <= SURELY_FLAT or raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        return False
    return _depth(raw.decode()) > MAX_DEPTH


def _depth(text: str) -> int:
    """The deepest level of open brackets outside of strings, also in text that is no JSON."""
    level = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        level += 1 if bracket in "{[" else -1
        deepest = max(deepest, level)
    return deepest


def field_error(field: str | int, text: str) -> str:
    return f'field "{field}": {text}'


def canonical_json(value: Any) -> str:
    """Compact, keys in order of first appearance, numbers with the digits they were sent with, no needless escapes."""
    kind = type(value)
    if kind is str:
        return str(encode_basestring(value))
    if kind is dict:
        return "{" + ",".join([f"{encode_basestring(k)}:{canonical_json(v)}" for k, v in value.items()]) + "}"
    if kind is list:
        return "[" + ",".join([canonical_json(v) for v in value]) + "]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    return str(value)
