"""The interface of envelopes. Other packages add theirs by the entry point ``mzshare.envelopes``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Envelope(Protocol):
    """What the records of a table mean for its rows: each is a new row, or changes earlier rows."""

    @property
    def name(self) -> str:
        """The name in specs and plans; in capitals, the word after ENVELOPE."""
        ...

    @property
    def appends(self) -> bool:
        """Whether every record is a row of its own, and none is ever changed. Only such tables can be filled yet."""
        ...

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        """What the envelope needs and the table has not got, in the words of SQL; None if nothing is missing.

        :param format: as the table's spec holds it.
        :param include: which parts of a record are columns too: ``key``, ``offset``, …
        """
        ...
