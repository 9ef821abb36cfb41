"""The interface of envelopes. Other packages add theirs by the entry point ``mzshare.envelopes``.

What changes rows travels to Spark's executors, so an envelope imports Arrow, numpy and the standard library at most.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

DELETES = "_mz_deletes"
"""A column of events, not of a table: whether the record takes its key's row away."""


class Envelope(Protocol):
    """What the records of a table mean for its rows: each is a new row, or changes the row of its key."""

    @property
    def name(self) -> str:
        """The name in specs and plans; in capitals, the word after ENVELOPE."""
        ...

    @property
    def appends(self) -> bool:
        """Whether every record is a row of its own, and none is ever changed. Other envelopes are ``KeyedEnvelope``."""
        ...

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        """What the envelope needs and the table has not got, in the words of SQL; None if nothing is missing.

        :param format: as the table's spec holds it.
        :param include: which parts of a record are columns too: ``key``, ``offset``, …
        """
        ...


class KeyedEnvelope(Envelope, Protocol):
    """An envelope whose records are events of a key, which has one row or none.

    If the last record of a key is all that counts, an attribute ``last_record_counts`` says so: checks then fold by
    themselves. Otherwise they fold by ``fold``, and do not show that it is right.
    """

    def deletes(self, values: pa.Array) -> pa.Array:
        """Which records take their key's row away, as booleans. The value of such a record is not decoded.

        :param values: of the records, raw.
        """
        ...

    def fold(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
        """The rows that the keys of ``events`` have afterwards; a key that gets no row has none.

        It must give the same whether it is called once for several ticks or tick by tick.

        :param events: the collection's columns and ``DELETES``, in the order of ticks and, within a tick, of places.
        :param before: the collection's rows of these keys, in no order.
        :param keys: the columns that make the key. None of them is NULL anywhere.
        """
        ...
