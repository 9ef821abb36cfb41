"""What a proof of a table comes to: it holds, it cannot be had any more, or the first thing that is wrong."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from airflow_provider_mzshare.connectors.places import Lane, Place
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.storage.comparison import DIFFERS, DOUBLE, MISSING, NOT_UPSTREAM

Verdict = Literal["exact", "unverifiable"]

_TOLD = {
    MISSING: "is upstream and not in the table",
    DOUBLE: "is in the table more than once",
    DIFFERS: "is not in the table as it is upstream",
    NOT_UPSTREAM: "is in the table and not upstream",
}


class VerificationFailed(TerminalError):
    """A table does not hold what its source holds. ``table`` is written as in SQL.

    :param at: the place of the first record that differs; None where it is no single one.
    :param what: ``missing``, ``double``, ``differs``, ``not upstream``, or a sentence.

    ``offset`` is the number of the place that positions count by, in their lane ``partition``.
    """

    def __init__(self, table: str, place: Place, at: Sequence[Any] | None, what: str, told: str | None = None) -> None:
        self.table, self.what, self.at = table, what, None if at is None else tuple(at)
        found = {} if at is None else dict(zip(place.given, at, strict=True))
        self.partition, self.offset = found.get(place.lane or ""), found.get(place.counted)
        where = f"{place.tell(at)} " if at is not None else ""
        told = told or f"{where}{_TOLD.get(what, what)}"
        resnapshot = f"mzshare sql {shlex.quote(f'ALTER TABLE {table} RESNAPSHOT')}"
        super().__init__(
            f"table {table!r} is not exact: {told}",
            hint=f"keep its folders to find the cause, then {resnapshot}",
        )


class KeyDiffers(VerificationFailed):
    """A key of a table whose rows change has not the row that its records say.

    :param what: ``missing``, ``double``, ``differs`` or ``not upstream``.
    :param upstream: the place of the key's last record there; None if it has none.
    :param stored: the place that the key's row names; None if it has no row.
    """

    def __init__(
        self,
        table: str,
        place: Place,
        what: str,
        key: Mapping[str, Any],
        upstream: Sequence[Any] | None,
        stored: Sequence[Any] | None,
    ) -> None:
        self.key, self.upstream, self.stored = dict(key), _tuple(upstream), _tuple(stored)
        at = stored if upstream is None else upstream
        there, here = ("" if each is None else place.tell(each) for each in (upstream, stored))
        told = f"key {json.dumps(self.key, default=repr, ensure_ascii=False)} {self._told(what, there, here)}"
        super().__init__(table, place, at, what, told)

    def _told(self, what: str, there: str, here: str) -> str:
        if what == MISSING:
            return f"has no row; its last record upstream is {there}"
        if what == DOUBLE:
            return f"has several rows, one of {here}"
        if what == DIFFERS and self.upstream == self.stored:
            return f"has another row than its record upstream says, {here}"
        if what == DIFFERS:
            return f"has a row of {here}; its last record upstream is {there}"
        if self.upstream is None:
            return f"has a row of {here}, and no such record upstream"
        return f"has a row of {here}; its last record upstream, {there}, does not say so"


def _tuple(at: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if at is None else tuple(at)


@dataclass(frozen=True)
class VerifiedRange:
    """What was compared of one partition: ``[lower, upper)``, and the rows of it."""

    partition: Lane
    lower: int
    upper: int
    rows: int
    errors: int


@dataclass(frozen=True)
class Verified:
    """The outcome of a check that did not fail.

    :param tick: as of which the table was read.
    :param verdict: ``exact``; or ``unverifiable``, because the upstream no longer has what is to be compared.
    :param key: the columns that make a row's key, where rows change: then every key was compared.
    :param unverifiable_keys: how many of them have lost the record that their row was made from.
    """

    table: str
    tick: int
    partitions: tuple[VerifiedRange, ...]
    rows: int
    errors: int
    data_hash: str
    errors_hash: str
    seconds: float
    verdict: Verdict
    reason: str | None = None
    hash_version: int = 1
    key: tuple[str, ...] = ()
    unverifiable_keys: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they travel in an XCom or are printed."""
        return {**asdict(self), "partitions": [asdict(each) for each in self.partitions]}
