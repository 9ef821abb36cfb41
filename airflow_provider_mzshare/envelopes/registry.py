"""Which envelopes there are. One of ours is one line here."""

from __future__ import annotations

from airflow_provider_mzshare.core.registry import Registry
from airflow_provider_mzshare.envelopes.base import Envelope

ENVELOPES: Registry[Envelope] = Registry(
    "envelope",
    "mzshare.envelopes",
    {
        "none": "airflow_provider_mzshare.envelopes.append:APPEND",
    },
)

_PLANNED = ("UPSERT", "DEBEZIUM")


def envelope_words() -> list[str]:
    """All that may stand after ENVELOPE."""
    return [envelope.sql_word for envelope in ENVELOPES.all()]


def planned_words() -> list[str]:
    """Those that somebody may ask for and nobody has registered."""
    return [word for word in _PLANNED if word not in envelope_words()]


def by_word(word: str) -> Envelope:
    """:param word: one of ``envelope_words``."""
    return next(envelope for envelope in ENVELOPES.all() if envelope.sql_word == word)
