"""How two definitions of an item differ, in the words of SQL. Compares only; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_mzshare.control.sql.column_types import to_sql
from airflow_provider_mzshare.control.sql.durations import format_duration
from airflow_provider_mzshare.control.sql.names import quote
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS, ColumnSpec, Include, Spec, Start

_SHOWN = 5
"""So many parts of a long list are told."""
_OPTIONS = {option.field: option for option in TABLE_OPTIONS.values()}


def differences(present: Spec, wanted: Spec) -> list[str]:
    """One text for each field in which ``wanted`` differs from ``present``."""
    found = []
    for field in type(wanted).model_fields:
        is_now, asked = getattr(present, field, None), getattr(wanted, field)
        if is_now != asked:
            found.append(_difference(field, is_now, asked))
    return found


def _difference(field: str, is_now: Any, asked: Any) -> str:
    if isinstance(asked, tuple):
        return _of_lists(field, [_text(part) for part in is_now or ()], [_text(part) for part in asked])
    words = field
    if (option := _OPTIONS.get(field)) is not None:
        words = option.all_words
        if option.type == "duration":
            is_now, asked = (format_duration(round(value * option.milliseconds)) for value in (is_now, asked))
    return f"{words} is {_text(is_now)}, not {_text(asked)}"


def _of_lists(field: str, is_now: Sequence[str], asked: Sequence[str]) -> str:
    only_now = [part for part in is_now if part not in asked]
    only_asked = [part for part in asked if part not in is_now]
    if not only_now and not only_asked:
        return f"{field}: the same in another order"
    told = (("it has", only_now), ("asked for", only_asked))
    return f"{field}: {', '.join(f'{words} {_some(parts)}' for words, parts in told if parts)}"


def _some(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return f"({', '.join(parts[:_SHOWN])}){more}"


def _text(value: Any) -> str:
    if isinstance(value, ColumnSpec):
        return f"{quote(value.name)} {to_sql(value.type)}"
    if isinstance(value, Include):
        return value.what.upper() if value.name == value.what else f"{value.what.upper()} AS {quote(value.name)}"
    if isinstance(value, Start):
        return _start(value)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def _start(start: Start) -> str:
    if start.mode == "offset":
        return f"OFFSET ({', '.join(f'{number}: {offset}' for number, offset in start.asked.items())})"
    return f"TIMESTAMP {start.timestamp}" if start.mode == "timestamp" else "the earliest record"
