"""Values of options: from SQL's literals and from what operators and forms give, by the same rules, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlglot import exp

from airflow_provider_mzshare.control.sql.durations import format_duration, parse_duration
from airflow_provider_mzshare.control.sql.grammar import INT64_MAX, identifier
from airflow_provider_mzshare.control.sql.names import check_name
from airflow_provider_mzshare.control.sql.scanning import check_text, shown
from airflow_provider_mzshare.control.sql.sizes import format_size, parse_size
from airflow_provider_mzshare.core.options import Option, OptionValue
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS as SOURCE_SETTINGS
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS as TABLE_OPTIONS
from airflow_provider_mzshare.core.specs import LegacySpec

TABLE_SETTINGS = {words: option for words, option in TABLE_OPTIONS.items() if option.changes}
"""Options of a table that can be changed later."""
COLUMN_OPTIONS = {words: option for words, option in TABLE_OPTIONS.items() if option.field in LegacySpec.model_fields}
"""Options that name columns of the upstream. In old syntax, sources and subsources have them too."""


def read_option(option: Option, literal: exp.Expr, model: type[BaseModel]) -> OptionValue:
    """The value of a literal of SQL. Raises ValueError with what is wrong."""
    if option.type == "wholes":
        return tuple(int(number.name) for number in literal.expressions)
    if option.type == "names":
        return tuple(name.name for name in literal.expressions)
    if option.type == "boolean":
        return bool(literal.this)
    return _checked(option, literal.name, model)


def read_given(option: Option, given: Any, model: type[BaseModel]) -> OptionValue:
    """The value of what an operator or a form gives; a template renders to text. Raises ValueError as SQL's does."""
    return _GIVEN.get(option.type, _given_text)(option, given, model)


def is_given(value: Any) -> bool:
    """False for None, an empty text and an empty list: a form sends one of them for an option that was left empty."""
    return value is not None and value not in ("", (), [])


# ── what operators and forms give ─────────────────────────────────────────────────────────────────────────────────────


def _given_text(option: Option, given: Any, model: type[BaseModel]) -> OptionValue:
    text = str(given)
    check_text(text)
    return _checked(option, text, model)


def _given_whole(option: Option, given: Any, model: type[BaseModel]) -> OptionValue:
    return _checked(option, str(_whole(option, given)), model)


def _whole(option: Option, given: Any) -> int:
    text = str(given).strip()
    digits = text.removeprefix("-") if option.type == "signed" else text
    if isinstance(given, bool) or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"expected {option.expected}, found {shown(text)}")
    if int(digits) > INT64_MAX:
        raise ValueError(f"the number is larger than {INT64_MAX}")
    return int(text)


def _given_wholes(option: Option, given: Any, model: type[BaseModel]) -> OptionValue:
    """``[3, 4]``, also as the text of it."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    if not isinstance(given, list | tuple):
        raise ValueError(f"expected whole numbers in brackets for {option.words}")
    return tuple(_whole(option, number) for number in given)


def _given_boolean(option: Option, given: Any, model: type[BaseModel]) -> OptionValue:
    if isinstance(given, bool):
        return given
    text = str(given).strip()
    if text.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"expected TRUE or FALSE, found {shown(text)}")
    return text.upper() == "TRUE"


def _given_names(option: Option, given: Any, model: type[BaseModel]) -> OptionValue:
    return given_names(given)


def given_names(given: Any) -> tuple[str, ...]:
    """``"a, b"`` or ``["a", "b"]``: names as they are, without quotes."""
    listed = given.split(",") if isinstance(given, str) else given
    names = tuple(name for one in listed if (name := str(one).strip()))
    for name in names:
        check_name(name, "a column name")
    return names


_GIVEN: dict[str, Callable[[Option, Any, type[BaseModel]], OptionValue]] = {
    "whole": _given_whole,
    "signed": _given_whole,
    "wholes": _given_wholes,
    "boolean": _given_boolean,
    "names": _given_names,
}


# ── what both must be ─────────────────────────────────────────────────────────────────────────────────────────────────


def _checked(option: Option, text: str, model: type[BaseModel]) -> OptionValue:
    value = _READERS[option.type](option, text)
    if option.field:
        _check_field(option, value, model)
    return value


def _check_field(option: Option, value: OptionValue, model: type[BaseModel]) -> None:
    """Check the value against its field of the model. Other fields may be missing."""
    try:
        model.model_validate({option.field: value})
    except ValidationError as error:
        wrong = [each["msg"] for each in error.errors() if each["loc"] == (option.field,)]
        if wrong:
            allowed = wrong[0].removeprefix("Input should be ")
            raise ValueError(f"{option.words} must be {allowed}{option.unit}") from None


def _read_name(option: Option, text: str) -> str:
    check_name(text, option.noun)
    return text


def _read_choice(option: Option, text: str) -> str:
    if text.lower() not in option.choices:
        raise ValueError(f"{option.words} must be {option.expected}, not '{shown(text)}'")
    return text.lower()


def _read_size(option: Option, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ValueError(f"{option.words} '{shown(text)}' {error}") from None


def _read_duration(option: Option, text: str) -> int | float:
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{option.all_words} '{shown(text)}' {error}") from None
    if option.is_whole and duration % option.milliseconds:
        raise ValueError(f"{option.all_words} '{shown(text)}' is not a whole number of{option.unit}")
    if option.milliseconds == 1:
        return duration
    return duration // option.milliseconds if option.is_whole else duration / option.milliseconds


_READERS: dict[str, Callable[[Option, str], OptionValue]] = {
    "name": _read_name,
    "text": lambda option, text: text,
    "whole": lambda option, text: int(text),
    "signed": lambda option, text: int(text),
    "choice": _read_choice,
    "duration": _read_duration,
    "size": _read_size,
}


# ── back ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_option(option: Option, value: OptionValue) -> exp.Expr:
    if option.type == "wholes" and isinstance(value, tuple):
        return exp.Tuple(expressions=[_number(number) for number in value])
    if option.type == "names" and isinstance(value, tuple):
        return exp.Tuple(expressions=[identifier(str(name)) for name in value])
    if option.type == "boolean":
        return exp.true() if value else exp.false()
    if option.type == "duration" and isinstance(value, int | float):
        return exp.Literal.string(format_duration(round(value * option.milliseconds)))
    if option.type == "size" and isinstance(value, int):
        return exp.Literal.string(format_size(value))
    if option.type == "choice":
        return exp.Literal.string(str(value).upper())
    return exp.Literal.string(value) if isinstance(value, str) else _number(value)


def _number(value: Any) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)
