"""Which envelopes there are. One of ours is one line here."""

from __future__ import annotations

from airflow_provider_mzshare.core.registry import Registry
from airflow_provider_mzshare.envelopes.base import Envelope
from airflow_provider_mzshare.errors import UnknownEnvelope

ENVELOPES: Registry[Envelope] = Registry(
    "envelope",
    "mzshare.envelopes",
    {
        "none": "airflow_provider_mzshare.envelopes.append:APPEND",
    },
)

_PLANNED = ("UPSERT", "DEBEZIUM")


def envelope_named(name: str) -> Envelope:
    if name not in ENVELOPES:
        raise UnknownEnvelope(name, list(ENVELOPES))
    return ENVELOPES.get(name)


def sql_word(name: str) -> str:
    """As it is written after ENVELOPE."""
    return name.upper()


def envelope_words() -> list[str]:
    """All that may stand there."""
    return [sql_word(envelope.name) for envelope in ENVELOPES.all()]


def planned_words() -> list[str]:
    """Those that somebody may ask for and nobody has registered."""
    return [word for word in _PLANNED if word not in envelope_words()]
