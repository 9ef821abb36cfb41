"""Which database a source reads, beyond its address, which journal keeps what it said, and through which slot. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_mzshare.core.ids import JournalId, journal_of

PREFIX = "mzshare_"
"""Of the names of our slots."""
_SLOT = re.compile(rf"{PREFIX}([0-9a-f]{{1,55}})")
_TEXT = re.compile(r"postgres:([0-9]+):([0-9]+):([0-9]+):(journal:[0-9a-f]+)")


@dataclass(frozen=True)
class Identity:
    """The incarnation of a source, as ``postgres:<system>:<timeline>:<database>:<journal>``.

    :param system: Postgres' system identifier: a server that is set up anew has another one.
    :param timeline: a server that was restored to a time, or a standby that took over, writes on another one.
    :param database: its oid: a database that is dropped and created again has another one.
    """

    system: int
    timeline: int
    database: int
    journal: JournalId

    def __str__(self) -> str:
        return f"postgres:{self.system}:{self.timeline}:{self.database}:{self.journal}"

    @classmethod
    def read(cls, incarnation: str) -> Identity:
        """Raise ValueError if it is no incarnation of a Postgres source."""
        match, journal = _TEXT.fullmatch(incarnation), journal_of(incarnation)
        if match is None or journal is None:
            raise ValueError(f"{incarnation!r} is no incarnation of a Postgres source")
        return cls(int(match[1]), int(match[2]), int(match[3]), journal)


def slot_name(journal: JournalId) -> str:
    """Of the source that has this journal: the same for ever, and no other source's, of this catalog or another."""
    return f"{PREFIX}{journal.removeprefix('journal:')}"[:63]


def journal_of_slot(name: str) -> JournalId | None:
    """The journal of a slot that is called as ours are."""
    match = _SLOT.fullmatch(name)
    return JournalId(f"journal:{match[1]}") if match else None
