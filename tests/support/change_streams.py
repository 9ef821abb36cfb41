"""The law of change streams, checked on any table: rows as of a time plus changes up to another are the rows as of it.

What can be cut, and what cannot, is compared with what can be read as of a time; so is when something changes.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem
from airflow_provider_mzshare.control.lifecycle.change_stream import Asked, open_changes
from airflow_provider_mzshare.control.lifecycle.read_table import read_table
from airflow_provider_mzshare.control.sql.script import parse_name
from airflow_provider_mzshare.errors import NotReadable

Rows = Counter[str]
Changes = dict[int, Rows]
"""By their time."""


def rows_of(table: pa.Table, names: Sequence[str]) -> Rows:
    """As text, in which one NaN is like another; NULL in columns that came later."""
    present = set(table.schema.names)
    columns = [table.column(name).to_pylist() if name in present else [None] * table.num_rows for name in names]
    return Counter(map(repr, zip(*columns, strict=True)))


def changes_of(catalog: Catalog, root: str, name: str, asked: Asked) -> Changes:
    """They come in the order of their times, and no row comes and goes at the same time."""
    found: dict[int, Rows] = defaultdict(Counter)
    seen = 0
    with open_changes(catalog, root, name, asked) as batches:
        for batch in batches:
            times, diffs, *columns = (column.to_pylist() for column in batch.columns)
            assert times == sorted(times), "times go backwards"
            assert not times or times[0] >= seen, "times go backwards"
            seen = max([seen, *times])
            for at, diff, row in zip(times, diffs, map(repr, zip(*columns, strict=True)), strict=True):
                assert diff, "a change that changes nothing"
                before = found[at][row]
                assert before * diff >= 0, f"{row} both comes and goes at {at}"
                found[at][row] = before + diff
    return dict(found)


def added(rows: Rows, changes: Changes, lower: int, upper: int) -> Rows:
    """With the changes of the times ``lower <= time < upper``."""
    total = Counter(rows)
    for at, diffs in changes.items():
        if lower <= at < upper:
            for row, diff in diffs.items():
                total[row] += diff
                assert total[row] >= 0, f"{row} goes at {at} and was not there"
    return Counter({row: count for row, count in total.items() if count})


class Streams:
    """One table's.

    :param probes: so many of the times that could be asked for are tried; None: all that can make a difference.
    """

    def __init__(self, catalog: Catalog, root: str, name: str, *, probes: int | None = None, seed: int = 0) -> None:
        self._catalog, self._root, self._name = catalog, root, name
        self._random = random.Random(seed)
        self._readable: dict[int, bool] = {}
        with catalog.read() as session:
            typed = parse_name(name)
            self.table: TableItem = items.find_table(session, (typed.schema, typed.name))
            query = select(TickRow.mz_timestamp).where(TickRow.source_id == self.table.source_id)
            ticks = list(session.scalars(query.order_by(TickRow.mz_timestamp)))
        since, upper = self.table.since, self.table.upper
        near = {since - 1, since, upper - 1, upper, *(at + off for at in ticks for off in (-1, 0))}
        self.times = sorted(at for at in near if since - 1 <= at <= upper)
        if probes is not None and len(self.times) > probes:
            kept = {since, upper - 1}
            self.times = sorted({*self._random.sample(self.times, probes), *kept})
        found = {at: rows for at in self.times if (rows := self._read(at)) is not None}
        names = found[upper - 1].schema.names
        """Those of the newest tick: of all of a stream up to it."""
        self.states = {at: rows_of(rows, names) for at, rows in found.items()}
        self._alike = [at for at, rows in found.items() if rows.schema.names == names]

    def check(self) -> int:
        """:returns: how many pairs of times were compared."""
        compared = 0
        for at in self.times:
            if at in self.states:
                compared += self._check_from(at)
            else:
                self._check_refused(at)
        return compared

    def _check_from(self, at: int) -> int:
        upper = self.table.upper
        whole = self._changes(Asked(at, upper))
        snapshot = whole.pop(at, Counter())
        assert snapshot == self.states[at], f"the snapshot as of {at}"
        assert all(at < time < upper for time in whole)
        without = [time for time in whole if not self._has_state(time)]
        assert not without, f"changes at {without}, and the table was never like that"
        later = [to for to in self.states if to >= at]
        for to in later:
            assert added(snapshot, whole, at + 1, to + 1) == self.states[to], f"changes from {at} to {to}"
        to = self._random.choice([time for time in self._alike if time >= at])
        alone = self._changes(Asked(at + 1, to + 1, snapshot=False))
        assert alone == {time: diffs for time, diffs in whole.items() if time <= to}, f"changes {at + 1} to {to}"
        return len(later)

    def _check_refused(self, at: int) -> None:
        """Nothing begins or ends there, and what is named instead can be had."""
        upper, since = self.table.upper, self.table.since
        for asked in (Asked(at), Asked(at + 1, snapshot=False)):
            refusal = self._refusal(asked)
            assert since <= at < upper or str(since if at < since else upper) in refusal, refusal
        first = min(self.states)
        # ``since`` may be where no state is, too: then no stream begins before the first one.
        if max(first, since + 1) <= at < upper:
            refusal = self._refusal(Asked(first, at + 1))
            named = re.findall(r"\d+", refusal.partition("nearest")[2])
            assert 1 <= len(named) <= 2, refusal
            for cut in map(int, named):
                assert self._read(cut - 1) is not None, f"{cut} is named, and cannot be had"
                # Between what is named nothing can be had.
                low, high = sorted((cut - 1, at))
                assert not [time for time in self.states if low < time < high]

    def _refusal(self, asked: Asked) -> str:
        try:
            self._changes(asked)
        except NotReadable as error:
            return error.line
        raise AssertionError(f"{asked} was answered, but the table cannot be read there")

    def _changes(self, asked: Asked) -> Changes:
        return changes_of(self._catalog, self._root, self._name, asked)

    def _has_state(self, at: int) -> bool:
        """Also at times that are no probes."""
        if at not in self._readable:
            self._readable[at] = at in self.states or self._read(at) is not None
        return self._readable[at]

    def _read(self, at: int) -> pa.Table | None:
        try:
            return read_table(self._catalog, self._root, self._name, as_of_ms=at)
        except NotReadable:
            return None
