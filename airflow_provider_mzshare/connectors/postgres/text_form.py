"""How a session has to be set so that a value always has the same text, whoever asks for it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping

TEXT_FORM: Mapping[str, str] = {
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
}
"""Settings on which the texts of values depend; of the stream and of snapshots alike."""


def as_options(settings: Mapping[str, str]) -> str:
    """As libpq takes them when it connects."""
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
