"""What the rest of the program asks of an envelope. One of another package is an entry point, ``mzshare.envelopes``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Envelope(Protocol):
    """What the records of a table mean for its rows: each one is a row, or it changes what others have said."""

    @property
    def name(self) -> str:
        """As specs and plans hold it; in capitals, the word that is written after ENVELOPE."""
        ...

    @property
    def appends(self) -> bool:
        """Every record is a row of its own, and none is ever changed. Tables of no other envelope can be filled yet."""
        ...

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        """What a table has not got that the envelope needs, in the words of SQL; None when it can be had.

        :param format: as the table's spec holds it.
        :param include: which parts of a record are columns besides: ``key``, ``offset``, …
        """
        ...
