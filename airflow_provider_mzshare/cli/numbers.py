"""Callbacks of options that are numbers: one that nothing below can hold is wrong use, and named as the option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer

from airflow_provider_mzshare.core import arguments

T = TypeVar("T")


def whole(value: int | None) -> int | None:
    return _checked(arguments.whole, value)


def seconds(value: float | None) -> float | None:
    return _checked(arguments.seconds, value)


def _checked(check: Callable[[str, Any], T], value: T | None) -> T | None:
    try:
        return arguments.given(check, "", value)
    except arguments.BadArgument as error:
        raise typer.BadParameter(f"it takes {error.wanted}") from None
