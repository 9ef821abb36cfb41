"""The registered envelopes. Each of ours is one line here."""

from __future__ import annotations

from airflow_provider_mzshare.core.registry import Registry
from airflow_provider_mzshare.envelopes.base import Envelope
from airflow_provider_mzshare.errors import UnknownEnvelope

UNWRITTEN = frozenset({"postgres"})
"""Envelopes that tables of one kind of source always have: statements never name them."""

ENVELOPES: Registry[Envelope] = Registry(
    "envelope",
    "mzshare.envelopes",
    {
        "none": "airflow_provider_mzshare.envelopes.append:APPEND",
        "upsert": "airflow_provider_mzshare.envelopes.upsert:UPSERT",
        "debezium": "airflow_provider_mzshare.envelopes.debezium:DEBEZIUM",
        "postgres": "airflow_provider_mzshare.envelopes.postgres:POSTGRES",
    },
)


def envelope_named(name: str) -> Envelope:
    if name not in ENVELOPES:
        raise UnknownEnvelope(name, list(ENVELOPES))
    return ENVELOPES.get(name)


def envelope_target(name: str) -> str:
    """``module:attribute`` of it, by which executors load it."""
    if name not in ENVELOPES:
        raise UnknownEnvelope(name, list(ENVELOPES))
    return ENVELOPES.targets[name]


def sql_word(name: str) -> str:
    """The word after ENVELOPE."""
    return name.upper()


def choices() -> tuple[str, ...]:
    """The names that users may give."""
    return tuple(name for name in ENVELOPES if name not in UNWRITTEN)


def envelope_words() -> list[str]:
    """All words that may follow ENVELOPE. No envelope is loaded: a statement mostly names none."""
    return [sql_word(name) for name in choices()]
