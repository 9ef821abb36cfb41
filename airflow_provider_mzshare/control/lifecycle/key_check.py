"""A table whose rows change: compared with its upstream key by key, from the table's start to the tick that is read.

A compacted topic keeps of each key the newest record only. So at an older tick, the record that a row was made from may
be gone upstream: nobody can tell any more whether the row is right, and the key is unverifiable. A topic never loses a
record before the older ones of its key and partition, so a record that is there still tells what its key was, unless
keys have moved between partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.base import Records, Upstream
from airflow_provider_mzshare.connectors.places import Lane
from airflow_provider_mzshare.control.lifecycle.key_facts import KeyFacts
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.record_check import RecordCheck
from airflow_provider_mzshare.control.lifecycle.upstream_parts import PART_OFFSETS, Parts, cut
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope, Segment
from airflow_provider_mzshare.control.lifecycle.verified import KeyDiffers, Verified
from airflow_provider_mzshare.storage.comparison import Sums
from airflow_provider_mzshare.storage.keyed_comparison import (
    NONE,
    Keyed,
    LastEvents,
    Measures,
    Mismatch,
    Mismatches,
    OwnFold,
    compare,
    first_of,
)

Range = tuple[Segment, int, int]
"""``[lower, upper)`` of a segment."""


class _Part(NamedTuple):
    """Records of a segment, decoded. :param ends: of what was read."""

    segment: Segment
    ends: tuple[int, int]
    decoded: Parts

    @property
    def lane(self) -> Lane:
        return self.segment.partition

    @property
    def without_data(self) -> _Part:
        """The events were given to the fold."""
        return self._replace(decoded={**self.decoded, "data": []})


class KeyCheck(RecordCheck):
    """Error rows are compared by their places, as those of any table."""

    def __init__(self, scope: Scope, warehouse: str, report: Callable[[Progress], None], facts: KeyFacts) -> None:
        super().__init__(scope, warehouse, report)
        self._facts, self._newest = facts, self._by_version[-1]
        names = [frozenset(by_spec.member.schema.names) for by_spec in self._by_version]
        versions = list(zip(scope.spec_ticks, names, strict=True))
        self._keys = self._newest.member.keys
        self._measures = Measures(self._keys, scope.place, self._hash, versions)
        self._rows = self._measures.of([], self._newest.member.schema)
        self._unverifiable = 0

    def run(self, reader: Records, upstream: Upstream) -> str | None:
        fold = self._new_fold()
        for ranges in self._rounds(in_order=fold.in_order):
            held: list[_Part] = []
            for part in self._parts(ranges, reader):
                fold.add([self._facts.numbered(each, part.lane, self._scope.place) for each in part.decoded["data"]])
                if fold.in_order:
                    held.append(part.without_data)
                else:
                    self._compare_errors(part, None, reader, upstream)
            refused = fold.end_ticks()
            for part in held:
                self._compare_errors(part, refused, reader, upstream)
        self._rows = self._stored()
        self._compare_keys(fold, reader, upstream)
        reasons = [self._lost_keys(), self._lost_rows()]
        return "; ".join(reason for reason in reasons if reason) or None

    def _new_fold(self) -> LastEvents | OwnFold:
        member = self._newest.member
        envelope = member.keyed_envelope
        if getattr(envelope, "last_record_counts", False):
            return LastEvents(self._measures, member.events_schema)
        return OwnFold(envelope, self._measures, member.events_schema)

    def _rounds(self, *, in_order: bool) -> Iterator[Sequence[Range]]:
        """What is read before the fold goes on: a segment of a lane, or some ticks of all lanes."""
        if not in_order:
            yield from ([(segment, segment.lower, segment.upper)] for segment in self._segments)
            return
        before = dict.fromkeys(self._facts.ticks, 0)
        for number in self._ends():
            after = {lane: ticks.at(number) for lane, ticks in self._facts.ticks.items()}
            parts = [(s, max(s.lower, before[s.partition]), min(s.upper, after[s.partition])) for s in self._segments]
            yield [part for part in parts if part[1] < part[2]]
            before = after

    def _ends(self) -> Iterator[int]:
        """Ticks after which enough was read to be folded; the last tick is one."""
        numbers = np.unique(np.concatenate([np.empty(0, np.int64), *(t.numbers for t in self._facts.ticks.values())]))
        read = 0
        for number in numbers.tolist():
            position = sum(ticks.at(number) for ticks in self._facts.ticks.values())
            if position - read >= PART_OFFSETS or number == numbers[-1]:
                read = position
                yield number

    def _parts(self, ranges: Sequence[Range], reader: Records) -> Iterator[_Part]:
        """What is read at once, and decoded."""
        for segment, lower, upper in ranges:
            by_spec = self._by_version[segment.version]
            batches = reader.read(segment.partition, lower, upper)
            for begin, end, records in cut(batches, lower, upper, self._scope.place.counted):
                yield _Part(segment, (begin, end), by_spec.decode(records))

    def _compare_errors(self, part: _Part, refused: pa.RecordBatch | None, reader: Records, upstream: Upstream) -> None:
        """:param refused: error rows that only the rows of their keys could tell."""
        wanted = list(part.decoded["errors"])
        if refused is not None:
            wanted.append(self._surely_refused(part, self._within(part, refused), reader, upstream))
        self._compare(part.segment, part.ends, {"data": [], "errors": wanted}, [], reader, upstream)

    def _within(self, part: _Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        place, (begin, end) = self._scope.place, part.ends
        counted = rows.column(place.column(place.counted).name)
        chosen = pc.and_(pc.greater_equal(counted, begin), pc.less(counted, end))
        if place.lane is not None:
            chosen = pc.and_(chosen, pc.equal(rows.column(place.column(place.lane).name), part.lane))
        return rows.filter(chosen)

    def _surely_refused(
        self, part: _Part, refused: pa.RecordBatch, reader: Records, upstream: Upstream
    ) -> pa.RecordBatch:
        """A record may only seem to have no row, because compaction has removed what made the row."""
        if not refused.num_rows or not (excuse := self._explain(reader, upstream)):
            return refused
        names = list(self._scope.place.names)
        there = {
            tuple(row.values())
            for batch in self._errors.between(part.lane, *part.ends)
            for row in batch.select(names).to_pylist()
        }
        kept = pa.array([tuple(row.values()) in there for row in refused.select(names).to_pylist()], pa.bool_())
        if not pc.all(kept).as_py():
            self._why = excuse
        return refused.filter(kept)

    def _stored(self) -> Keyed:
        """One part after the other: only their numbers are kept."""
        schema = self._newest.member.schema
        parts = [self._measures.of([batch], schema) for batch in self._newest.data.batches()]
        return Keyed.joined([self._measures.of([], schema), *parts])

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _compare_keys(self, fold: LastEvents | OwnFold, reader: Records, upstream: Upstream) -> None:
        events = fold.found()
        wrong, missing, gone = compare(events, self._rows)
        found = [*wrong, missing, gone]
        is_doubtful = any(len(each.rows) for each in (found if fold.in_order else (missing, gone)))
        if is_doubtful and (excuse := self._explain(reader, upstream)):
            self._why = excuse
            # A row past the end of the topic names no place that could be read.
            self.check_strays()
            found = self._surely(events, found, fold, reader)
        if first := first_of(found, events, self._rows):
            raise self._differs(first, events, reader)

    def _surely(
        self, events: Keyed, found: Sequence[Mismatches], fold: LastEvents | OwnFold, reader: Records
    ) -> list[Mismatches]:
        """What is wrong although records may have been removed upstream. The others are counted as unverifiable."""
        if fold.in_order:
            self._unverifiable = sum(len(each.rows) for each in found)
            return []
        *wrong, missing, gone = found
        kept = [self._there(events, missing.events, reader), self._there(self._rows, gone.rows, reader)]
        if fold.is_spread or self._is_spread(events, gone):
            # The record that deleted a key may have been in a partition that has lost it.
            kept[0] = np.zeros(len(kept[0]), np.bool_)
        self._unverifiable = sum(int((~each).sum()) for each in kept)
        return [*wrong, missing.only(kept[0]), gone.only(kept[1])]

    def _is_spread(self, events: Keyed, gone: Mismatches) -> bool:
        word = self._measures.lane_word
        both = gone.events != NONE
        if word is None or not both.any():
            return False
        return bool((events.order[word][gone.events[both]] != self._rows.order[word][gone.rows[both]]).any())

    def _there(self, placed: Keyed, numbers: Any, reader: Records) -> Any:
        """Which of some places have a record upstream, read anew."""
        place, at = self._scope.place, [self._measures.place_of(placed.at(int(number))) for number in numbers]
        by_lane: dict[Lane, set[int]] = {}
        for each in at:
            lane, counted = self._counted(each)
            by_lane.setdefault(lane, set()).add(counted)
        there = set()
        for lane, wanted in by_lane.items():
            for batch in reader.read(lane, min(wanted), max(wanted) + 1):
                there |= {(lane, n) for n in map(int, batch.column(place.counted).to_pylist()) if n in wanted}
        return np.array([self._counted(each) in there for each in at], np.bool_)

    def _counted(self, at: Sequence[Any]) -> tuple[Lane, int]:
        place = self._scope.place
        named = dict(zip(place.given, at, strict=True))
        return named[place.lane] if place.lane else place.only_lane, int(named[place.counted])

    def _differs(self, found: Mismatch, events: Keyed, reader: Records) -> KeyDiffers:
        places: list[tuple[Any, ...] | None] = [
            None if number == NONE else self._measures.place_of(of.at(number))
            for number, of in ((found.event, events), (found.row, self._rows))
        ]
        upstream, stored = places
        key = self._key_stored(stored) if stored is not None else self._key_upstream(upstream or (), reader)
        return KeyDiffers(self._scope.table.display, self._scope.place, found.what, key, upstream, stored)

    def _key_stored(self, at: Sequence[Any]) -> dict[str, Any]:
        lane, counted = self._counted(at)
        return self._key_among(self._newest.data.between(lane, counted, counted + 1), at)

    def _key_upstream(self, at: Sequence[Any], reader: Records) -> dict[str, Any]:
        lane, counted = self._counted(at)
        segment = next(s for s in self._segments if s.partition == lane and s.lower <= counted < s.upper)
        decoded = self._by_version[segment.version].decode(reader.read(lane, counted, counted + 1))
        return self._key_among(decoded["data"], at)

    def _key_among(self, batches: Sequence[pa.RecordBatch], at: Sequence[Any]) -> dict[str, Any]:
        names = self._scope.place.names
        rows = [row for batch in batches for row in batch.select([*self._keys, *names]).to_pylist()]
        mine: dict[str, Any] = next((row for row in rows if tuple(row[name] for name in names) == tuple(at)), {})
        return {name: mine.get(name) for name in self._keys}

    # ── sums ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_certificate(self) -> None:
        """And the sums of all commits: what each has changed adds up to the rows that are there."""
        found, written = (self._rows.size, self._rows.hash()), self._facts.written
        if self._sums_compare and found != written:
            other = ", with other hashes" if found[0] == written[0] else ""
            raise self._failed(None, f"its commits sum up to {written[0]} rows, it holds {found[0]}{other}")
        super().check_certificate()

    @property
    def _sums_compare(self) -> bool:
        """Commits have the collection's hash, and hash what they take away with the columns that the table has then."""
        same_columns = len({frozenset(by_spec.member.schema.names) for by_spec in self._by_version}) == 1
        return same_columns and self._hash.version == self._scope.point.hash_version

    def _certified(self) -> Sums:
        """Rows as the backfill's commits have changed them; error rows as they were found."""
        errors = super()._certified()
        rows, hash = self._facts.certified
        return Sums(rows, errors.errors, hash, errors.errors_hash)

    def _lost_keys(self) -> str | None:
        count = self._unverifiable
        return f"{count} keys have records that are gone upstream, {self._why}" if count else None

    def result(self, reason: str | None) -> Verified:
        verified, word = super().result(reason), self._measures.lane_word
        by_lane = Counter([] if word is None else self._rows.order[word].tolist())
        ranges = [
            replace(each, rows=self._rows.size if word is None else by_lane[each.partition])
            for each in verified.partitions
        ]
        return replace(
            verified,
            partitions=tuple(ranges),
            rows=self._rows.size,
            data_hash=f"{self._rows.hash():032x}",
            key=tuple(self._keys),
            unverifiable_keys=self._unverifiable,
        )
