"""Compares the rows of a table whose rows change with what its upstream's events make of them. Reads nothing itself.

Where the last record of a key is all that counts, the fold here is another one than the envelope's: of every key it
keeps the hash, and of its last event the place and the row's hash. Memory grows with the keys, not with the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.schema import TICK, system_names
from airflow_provider_mzshare.envelopes.base import CLEARS, DELETES, MARKS, KeyedEnvelope, as_change_envelope
from airflow_provider_mzshare.storage.comparison import DIFFERS, DOUBLE, MISSING, NOT_UPSTREAM, place_words
from airflow_provider_mzshare.storage.fanout.events import as_errors
from airflow_provider_mzshare.storage.fanout.hashing import Lanes, RowHash, hash_rows

PENDING_ROWS = 500_000
"""How many events wait to be folded, at least: so a fold of many keys is not sorted anew for each few events."""

NONE = -1
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Versions = Sequence[tuple[int, frozenset[str]]]
"""From which tick on rows have which columns, oldest first."""


class Keyed(NamedTuple):
    """Rows, or events, as numbers; one of each array for each.

    :param order: the tick and the words of the place; what is greater comes later.
    """

    key: Lanes
    order: Sequence[npt.NDArray[Any]]
    row: Lanes
    deletes: Mask

    @property
    def size(self) -> int:
        return len(self.deletes)

    @property
    def columns(self) -> list[npt.NDArray[Any]]:
        return [*self.key, *self.order, *self.row, self.deletes]

    @classmethod
    def from_columns(cls, columns: Sequence[npt.NDArray[Any]]) -> Keyed:
        return cls(Lanes(*columns[:2]), columns[2:-3], Lanes(*columns[-3:-1]), columns[-1])

    @classmethod
    def joined(cls, parts: Sequence[Keyed]) -> Keyed:
        """:param parts: at least one."""
        return cls.from_columns([np.concatenate(each) for each in zip(*(part.columns for part in parts), strict=True)])

    def take(self, chosen: Any) -> Keyed:
        return Keyed.from_columns([column[chosen] for column in self.columns])

    def at(self, number: int) -> tuple[Any, ...]:
        """The order of one of them, as Python's values."""
        return tuple(word[number : number + 1].tolist()[0] for word in self.order)

    def hash(self) -> int:
        return hash_rows(self.row)


@dataclass(frozen=True)
class Measures:
    """What of rows and events is compared, and how.

    :param keys: the columns that make a row's key.
    :param versions: a row is hashed with the columns that it had when it was written.
    """

    keys: Sequence[str]
    place: Place
    how: RowHash
    versions: Versions

    def of(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> Keyed:
        """Of rows, or of events."""
        nothing = pa.RecordBatch.from_pylist([], schema)
        parts = [self._of(part, names) for batch in [nothing, *batches] for part, names in self._by_version(batch)]
        return Keyed.joined(parts)

    def _by_version(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, frozenset[str]]]:
        if len(self.versions) == 1:
            yield batch, self.versions[0][1]
            return
        firsts = np.array([first for first, _ in self.versions])
        numbers = np.searchsorted(firsts, batch.column(TICK).to_numpy(zero_copy_only=False), side="right") - 1
        for number, (_, names) in enumerate(self.versions):
            yield batch.filter(pa.array(numbers == number)), names

    def _of(self, batch: pa.RecordBatch, names: frozenset[str]) -> Keyed:
        """The hash of a row is that of its key and its visible columns: it does not depend on the way to the row."""
        hidden = system_names(batch.schema.names)
        visible = batch.select([name for name in batch.schema.names if name in names and name not in hidden])
        is_event = DELETES in batch.schema.names
        deletes = np.zeros(batch.num_rows, np.bool_)
        if is_event:
            deletes = batch.column(DELETES).to_numpy(zero_copy_only=False).astype(np.bool_)
        words = [word for name in self.place.names for word in place_words(batch.column(name))]
        order = [batch.column(TICK).to_numpy(zero_copy_only=False), *words]
        return Keyed(self.how.of_rows(batch.select(list(self.keys))), order, self.how.of_rows(visible), deletes)

    def place_of(self, order: Sequence[Any]) -> tuple[Any, ...]:
        """The place of a row or an event, from its order."""
        words = iter(order[1:])
        return tuple((next(words) << 64) + next(words) if c.is_wide else next(words) for c in self.place.columns)

    @property
    def lane_word(self) -> int | None:
        """Which of the words of an order names the lane."""
        if self.place.lane is None:
            return None
        index = self.place.given.index(self.place.lane)
        return 1 + sum(2 if column.is_wide else 1 for column in self.place.columns[:index])


# ── folding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Fold(Protocol):
    in_order: bool
    """Whether it needs the events tick by tick, of all lanes."""

    def add(self, events: Sequence[pa.RecordBatch]) -> None: ...

    def end_ticks(self) -> pa.RecordBatch | None:
        """All events of the ticks so far were given. Returns those that are error rows, if the fold can tell."""
        ...

    def found(self) -> Keyed:
        """One row, or one deletion, for each key that has had events."""
        ...


class LastEvents:
    """The last event of every key, whatever the order in which events come: lane by lane, part by part."""

    in_order = False

    def __init__(self, measures: Measures, schema: pa.Schema) -> None:
        self._measures, self._schema = measures, schema
        self._last, self._pending = measures.of([], schema), [measures.of([], schema)]
        self.is_spread = False
        """Whether some key has had events in different lanes."""

    def add(self, events: Sequence[pa.RecordBatch]) -> None:
        self._pending.append(self._measures.of(events, self._schema))
        if sum(part.size for part in self._pending) > max(PENDING_ROWS, self._last.size // 2):
            self._fold()

    def end_ticks(self) -> pa.RecordBatch | None:
        """Ticks are part of the order."""
        return None

    def found(self) -> Keyed:
        self._fold()
        return self._last

    def _fold(self) -> None:
        every = Keyed.joined([self._last, *self._pending])
        order = np.lexsort([*reversed(every.order), *every.key])
        lo, hi = (lane[order] for lane in every.key)
        is_last = np.ones(len(order), np.bool_)
        is_last[:-1] = (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1])
        if self._measures.lane_word is not None:
            lane = every.order[self._measures.lane_word][order]
            self.is_spread |= bool((~is_last[:-1] & (lane[1:] != lane[:-1])).any())
        self._last, self._pending = every.take(order[is_last]), []


class OwnFold:
    """The rows that an envelope's own fold gives: for envelopes whose meaning only they know.

    It shows that the rows follow from the upstream, and not that the fold is right.
    """

    in_order = True
    is_spread = True

    def __init__(self, envelope: KeyedEnvelope, measures: Measures, schema: pa.Schema) -> None:
        """:param schema: of the events."""
        self._envelope, self._measures, self._schema = envelope, measures, schema
        self._rows: pa.Table = pa.schema([each for each in schema if each.name not in MARKS]).empty_table()
        self._pending: list[pa.Table] = []

    def add(self, events: Sequence[pa.RecordBatch]) -> None:
        self._pending += [pa.Table.from_batches([batch]) for batch in events]

    def end_ticks(self) -> pa.RecordBatch | None:
        if not self._pending:
            return None
        keys, names = self._measures.keys, self._rows.schema.names
        order = [(name, "ascending") for name in system_names(names)]
        # Events of an older spec have fewer columns.
        shape = self._schema.empty_table()
        events = pa.concat_tables([shape, *self._pending], promote_options="default").sort_by(order)
        change = as_change_envelope(self._envelope)
        if change is not None and any(events.column(CLEARS).to_pylist()):
            mine = np.ones(self._rows.num_rows, np.bool_)
        else:
            mine = np.isin(self._keys_of(self._rows), self._keys_of(events))
        others, before = (self._rows.filter(pa.array(chosen)) for chosen in (~mine, mine))
        refused = None
        if change is None:
            after = self._envelope.fold(events, before, keys)
        else:
            after, numbers = change.settle(events, before, keys)
            found = events.take(pa.array(list(numbers), pa.int64()))
            refused = as_errors(found, list(numbers.values()), self._measures.place)
        self._rows = pa.concat_tables([others, after.select(names)]).combine_chunks()
        self._pending = []
        return refused

    def found(self) -> Keyed:
        self.end_ticks()
        return self._measures.of(self._rows.to_batches(), self._rows.schema)

    def _keys_of(self, table: pa.Table) -> npt.NDArray[Any]:
        """128 bits for each row, as one value."""
        found = [self._measures.how.of_rows(batch) for batch in table.select(list(self._measures.keys)).to_batches()]
        lo, hi = (np.concatenate([np.empty(0, np.uint64), *(lanes[n] for lanes in found)]) for n in (0, 1))
        found_keys = np.empty(len(lo), [("lo", np.uint64), ("hi", np.uint64)])
        found_keys["lo"], found_keys["hi"] = lo, hi
        return found_keys


# ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Mismatches(NamedTuple):
    """Keys whose row is not the one that is due.

    :param what: ``missing``, ``double``, ``differs`` or ``not upstream``.
    :param events: the numbers of their last events upstream, and of their rows; ``NONE`` where there is none.
    """

    what: str
    events: Numbers
    rows: Numbers

    def only(self, chosen: Mask) -> Mismatches:
        return Mismatches(self.what, self.events[chosen], self.rows[chosen])


class Mismatch(NamedTuple):
    what: str
    event: int
    row: int


class Compared(NamedTuple):
    """:param wrong: whatever may have been removed upstream.
    :param missing: keys that have a last event and no row.
    :param gone: rows whose event was not met, nor a later one.
    """

    wrong: Sequence[Mismatches]
    missing: Mismatches
    gone: Mismatches


def compare(events: Keyed, rows: Keyed) -> Compared:
    """:param events: the last one of each key, which deletes its row or is its row."""
    event, row, counts = _by_key(events, rows)
    has_row, has_event, is_double = row != NONE, event != NONE, counts > 1
    alive = has_event & ~events.deletes[event] if events.size else has_event
    both = has_row & has_event & ~is_double
    same_place, later = _placed(events, rows, event, row, both)
    equal = alive & _same(events, rows, event, row)

    def some(what: str, chosen: Mask) -> Mismatches:
        return Mismatches(what, event[chosen], row[chosen])

    wrong = (
        some(DOUBLE, is_double),
        some(DIFFERS, same_place & ~equal),
        some(DIFFERS, later & ~same_place & alive),
        some(NOT_UPSTREAM, later & ~same_place & ~alive),
    )
    gone = has_row & ~is_double & ~(both & (same_place | later))
    return Compared(wrong, some(MISSING, alive & ~has_row), some(NOT_UPSTREAM, gone))


def first_of(found: Sequence[Mismatches], events: Keyed, rows: Keyed) -> Mismatch | None:
    """That of the lowest tick and place: of the row, or of the event where there is no row."""
    firsts = []
    for each in found:
        if len(each.rows):
            by_row = each.what != MISSING
            chosen, words = (each.rows, rows.order) if by_row else (each.events, events.order)
            first = int(np.lexsort([word[chosen] for word in reversed(words)])[0])
            at = (rows if by_row else events).at(int(chosen[first]))
            firsts.append((at, Mismatch(each.what, int(each.events[first]), int(each.rows[first]))))
    return min(firsts, key=lambda pair: pair[0])[1] if firsts else None


def _by_key(events: Keyed, rows: Keyed) -> tuple[Numbers, Numbers, Numbers]:
    """For every key that is anywhere: its event, its first row, and how many rows it has."""
    lo, hi = (np.concatenate(both) for both in zip(events.key, rows.key, strict=True))
    order = np.lexsort([lo, hi])
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (lo[order[1:]] != lo[order[:-1]]) | (hi[order[1:]] != hi[order[:-1]])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    of_events, of_rows = np.split(numbers, [events.size])
    count = int(begins.sum())
    event, row = np.full(count, NONE, np.int64), np.full(count, NONE, np.int64)
    event[of_events] = np.arange(events.size)
    row[of_rows[::-1]] = np.arange(rows.size)[::-1]
    return event, row, np.bincount(of_rows, minlength=count)


def _placed(events: Keyed, rows: Keyed, event: Numbers, row: Numbers, both: Mask) -> tuple[Mask, Mask]:
    """Of keys that have both: whether they are of one place, and whether the event is later than the row."""
    same_place, equal_so_far, later = both.copy(), both.copy(), np.zeros(len(both), np.bool_)
    if not both.any():
        return same_place, later
    for number, (one, other) in enumerate(zip(events.order, rows.order, strict=True)):
        ours, theirs = one[event], other[row]
        later |= equal_so_far & (ours > theirs)
        equal_so_far &= ours == theirs
        if number:
            same_place &= ours == theirs
    return same_place, later


def _same(events: Keyed, rows: Keyed, event: Numbers, row: Numbers) -> Mask:
    """In the values of the row, and in its tick."""
    if not events.size or not rows.size:
        return np.zeros(len(event), np.bool_)
    pairs = [(events.order[0], rows.order[0]), *zip(events.row, rows.row, strict=True)]
    found: Mask = np.logical_and.reduce([one[event] == other[row] for one, other in pairs])
    return found
