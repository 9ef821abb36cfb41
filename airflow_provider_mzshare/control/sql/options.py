"""Options in SQL: their values from literals, checked, and back; and the tables of those that are not a connector's."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError
from sqlglot import exp

from airflow_provider_mzshare.control.sql.durations import format_duration, parse_duration
from airflow_provider_mzshare.control.sql.names import check_name
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.core.options import Option, OptionValue, by_words

SOURCE_SETTINGS = by_words(
    Option("TRIGGER INTERVAL", "duration", "a duration such as '500ms'", "trigger_interval_ms", unit=" milliseconds"),
    Option("MAX RECORDS PER TICK", "whole", field="max_records_per_tick"),
    Option(
        "IDLE TICK INTERVAL", "duration", "a duration such as '10s'", "idle_tick_seconds",
        milliseconds=1_000, unit=" seconds",
    ),
    Option("BACKFILL RATE", "whole", "records per second, a whole number", "backfill_rate"),
    Option("CUTOVER WAIT", "duration", "a duration such as '250ms'", "cutover_wait_ms", unit=" milliseconds"),
)  # fmt: skip

TABLE_SETTINGS = {"ON DECODE ERROR": "on_decode_error", "RETAIN HISTORY": "retain_history_seconds"}
"""Those of a table that can be changed later, and their fields."""


def read_option(option: Option, literal: exp.Expr, model: type[BaseModel]) -> OptionValue:
    """Its value, as ``model`` allows it. Raises ValueError with what is wrong."""
    if option.type == "wholes":
        return tuple(int(number.name) for number in literal.expressions)
    if option.type in ("name", "text"):
        if option.type == "name":
            check_name(literal.name, option.noun)
        return literal.name
    return read_number(option, literal.name, model)


def read_number(option: Option, literal: str, model: type[BaseModel], name: str = "") -> int | float:
    """:param name: what the option is called in messages, unless it is its words."""
    value = _number(option, literal, name or option.words)
    try:
        model.model_validate({option.field: value} if option.field else {})
    except ValidationError as error:
        # What else the model needs is not looked at here.
        wrong = [each["msg"] for each in error.errors() if each["loc"] == (option.field,)]
        if wrong:
            allowed = wrong[0].removeprefix("Input should be ")
            raise ValueError(f"{name or option.words} must be {allowed}{option.unit}") from None
    return value


def _number(option: Option, literal: str, name: str) -> int | float:
    if option.type != "duration":
        return int(literal)
    try:
        duration = parse_duration(literal)
    except ValueError as error:
        raise ValueError(f"{name} '{shown(literal)}' {error}") from None
    return duration if option.milliseconds == 1 else duration / option.milliseconds


def write_option(option: Option, value: OptionValue) -> exp.Expr:
    if isinstance(value, tuple):
        return exp.Tuple(expressions=[_whole(number) for number in value])
    if isinstance(value, str):
        return exp.Literal.string(value)
    if option.type == "duration":
        return exp.Literal.string(format_duration(round(value * option.milliseconds)))
    return _whole(value)


def _whole(value: int | float) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)
