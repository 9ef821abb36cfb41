"""Flags and settings of the whole catalog: what there is, its default, its present value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.object_models import SystemSettingRow
from airflow_provider_mzshare.control.sql.durations import format_duration, parse_duration

ENABLE_TABLES = "enable_create_table_from_source"
FORCE_TABLES = "force_source_table_syntax"
HISTORY = "status_history_retention"
QUERY_TIME = "query_timeout"
_LONGEST_QUERY_MS = 600_000
_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def _boolean(value: bool | str) -> str:
    text = str(value).strip().lower()
    if text in ("true", "on", "yes", "1"):
        return "true"
    if text in ("false", "off", "no", "0"):
        return "false"
    raise ValueError


def _duration(value: bool | str) -> str:
    milliseconds = parse_duration(str(value))
    if milliseconds <= 0:
        raise ValueError
    return format_duration(milliseconds)


def _query_time(value: bool | str) -> str:
    milliseconds = parse_duration(str(value))
    if not 0 < milliseconds <= _LONGEST_QUERY_MS:
        raise ValueError
    return format_duration(milliseconds)


@dataclass(frozen=True)
class Setting:
    """:param read: turns a value into the form in which it is stored; raises ValueError if it is no valid value."""

    default: str
    wanted: str
    read: Callable[[bool | str], str]


SETTINGS = {
    ENABLE_TABLES: Setting("true", "true or false", _boolean),
    FORCE_TABLES: Setting("true", "true or false", _boolean),
    HISTORY: Setting("30 days", "a duration such as '30 days'", _duration),
    QUERY_TIME: Setting("30 seconds", "a duration of at most 10 minutes, such as '30 seconds'", _query_time),
}


def value_of(session: Session, name: str) -> str:
    stored = session.scalar(select(SystemSettingRow.value).where(SystemSettingRow.name == name))
    return SETTINGS[name].default if stored is None else stored


def is_on(session: Session, flag: str) -> bool:
    return value_of(session, flag) == "true"


def retention_ms(session: Session) -> int:
    """How long the history of statuses is kept."""
    return parse_duration(value_of(session, HISTORY))


def query_ms(session: Session) -> int:
    """How long a SELECT on the catalog may take."""
    return parse_duration(value_of(session, QUERY_TIME))


def set_value(session: Session, name: str, value: str | None) -> None:
    """Set a value, in its stored form. None, or the default itself, removes the row."""
    session.execute(delete(SystemSettingRow).where(SystemSettingRow.name == name), execution_options=_NO_SYNC)
    if value is not None and value != SETTINGS[name].default:
        session.execute(insert(SystemSettingRow).values(name=name, value=value))
