"""The interface of envelopes. Other packages add theirs by the entry point ``mzshare.envelopes``.

What changes rows travels to Spark's executors, so an envelope imports Arrow, numpy and the standard library at most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_mzshare.formats.base import Changes

DELETES = "_mz_deletes"
"""A column of events, not of a table: whether the record takes its key's row away."""
CLEARS = "_mz_clears"
"""The same: whether the record takes all rows away, of whatever key. It has no key itself."""
KEPT = "_mz_kept"
"""The same: the columns, as a JSON list, whose values are those of the key's row before; NULL if there are none."""
RECORD = {name: f"_mz_record_{name}" for name in ("timestamp", "key", "value")}
"""The same: the record as it came, if it has columns that are kept. Without a row before it is an error row."""
MARKS = frozenset({DELETES, CLEARS, KEPT, *RECORD.values()})
"""What events have, and rows do not."""


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


class Judged(NamedTuple):
    """What records do, each taken alone; one of each for each record.

    :param deletes: whether it takes its key's row away.
    :param clears: whether it takes all rows away. Then it ``deletes`` too.
    :param errors: why a record does nothing.
    """

    deletes: Sequence[bool]
    clears: Sequence[bool]
    errors: Mapping[int, str]


class Settled(NamedTuple):
    """:param after: the rows that the keys of some events have afterwards.
    :param refused: of the events, by their numbers, those that change nothing, because they keep values of a row
        that is not there; and why.
    """

    after: pa.Table
    refused: Mapping[int, str]


class ChangeEnvelope(KeyedEnvelope, Protocol):
    """An envelope whose values say how a row has changed, and have the row inside.

    Its events also have the columns ``CLEARS``, ``KEPT`` and those of ``RECORD``; ``fold`` is ``settle`` alone.
    """

    wraps: bool
    """True."""

    def judge(self, changes: Changes) -> Judged: ...

    def settle(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> Settled:
        """As ``fold``. If an event ``CLEARS``, ``before`` has all rows that there are."""
        ...


def wraps_rows(envelope: Envelope) -> bool:
    return bool(getattr(envelope, "wraps", False))


def as_change_envelope(envelope: Envelope) -> ChangeEnvelope | None:
    return cast("ChangeEnvelope", envelope) if wraps_rows(envelope) else None
