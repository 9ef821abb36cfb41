"""Commits to a collection whose rows change: planned on one version of it, and put at the next one or not at all.

What a tick makes of a row depends on the row that was there. So a plan is never sent again at a later version: if the
collection has moved on, the events are folded anew into what it holds now. How a collection keeps its rows, by merges
or with vectors, is not known here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_mzshare.core.schema import TICK, system_names
from airflow_provider_mzshare.core.ticklog.keyed_commits import what_to_put
from airflow_provider_mzshare.envelopes.base import (
    CLEARS,
    KEPT,
    MARKS,
    ChangeEnvelope,
    KeyedEnvelope,
    Settled,
    as_change_envelope,
)
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.commit import Content, FileWritten
from airflow_provider_mzshare.storage.collections.rows import snapshot_of
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS, Lanes, hash_rows, hash_table, row_hash


@dataclass(frozen=True)
class Changes:
    """What a commit is to do to the collection at one version.

    :param version: the one that it was planned on.
    :param keys: the columns that make a row's key.
    :param before: the rows that the keys have at this version.
    :param after: the rows that they are to have. A key that is not among them loses its row.
    :param hash: the hash of the rows afterwards less that of the rows before.
    """

    version: int
    keys: Sequence[str]
    before: pa.Table
    after: pa.Table
    hash: int
    refused: Mapping[int, str] = field(default_factory=dict)
    """Events that change nothing, by their numbers, and why."""

    @property
    def have_effect(self) -> bool:
        return bool(self.before.num_rows or self.after.num_rows)

    @property
    def more(self) -> int:
        """Rows afterwards less rows before."""
        return int(self.after.num_rows - self.before.num_rows)


class KeyedRows(ABC):
    """How the rows of a collection are found by their keys, and how a commit changes them."""

    @abstractmethod
    def before(self, collection: Collection, keys: pa.Table, shape: pa.Schema) -> pa.Table:
        """The rows, at the version that is loaded, whose key is among ``keys``, which may have a key several times."""

    @abstractmethod
    def put(
        self, collection: Collection, changes: Changes, mz_timestamp: int, metadata: Mapping[str, str]
    ) -> int | None:
        """One attempt, at the version after the one that is loaded, or not at all; without changes, an empty entry.

        :returns: as ``Content.put``.
        """


@dataclass(eq=False)
class KeyEvents(Content):
    """The events of a tick, or of a group of ticks, that the pass has written beside the collection.

    :param files: their paths are relative to the collection.
    :param schema: of the events.
    :param keys: the columns that make a row's key.
    :param rows: how the collection keeps its rows.
    """

    files: Sequence[FileWritten]
    schema: pa.Schema
    keys: Sequence[str]
    envelope: KeyedEnvelope
    hash_version: int
    rows: KeyedRows
    _read: pa.Table | None = field(default=None, init=False)
    _planned: Changes | None = field(default=None, init=False)
    _was_put: bool = field(default=False, init=False)

    def is_empty(self, collection: Collection) -> bool:
        """Plan on the version that is loaded. A plan that was put is not used again, whatever the answer was."""
        if self._planned is None or self._was_put or self._planned.version != collection.delta_version:
            self._planned, self._was_put = self._plan(collection), False
        effect = self._planned.have_effect
        several = not effect and self._spans_ticks(collection)
        return what_to_put(has_effect=effect, forced=False, spans_ticks=several) is None

    def _spans_ticks(self, collection: Collection) -> bool:
        return len(pc.unique(self._events(collection).column(TICK))) > 1

    def noted(self, metadata: Mapping[str, str]) -> dict[str, str]:
        changes = self._planned
        if changes is None:
            return dict(metadata)
        events = metadata["mz_rows"] if self.change is None else str(self.records)
        told = {"mz_rows": str(changes.more), "mz_hash": f"{changes.hash:032x}", "mz_events": events}
        return {**metadata, **told}

    def put(self, collection: Collection, mz_timestamp: int, metadata: Mapping[str, str]) -> int | None:
        changes = self._planned
        if changes is None or self._was_put or changes.version != collection.delta_version:
            raise ValueError("a commit is planned on the version that it follows, and put once")
        self._was_put = True
        crashpoint("keyed_planned")
        version = self.rows.put(collection, changes, mz_timestamp, metadata)
        crashpoint("keyed_put")
        return version

    def let_go(self, collection: Collection, failures: Sequence[Exception]) -> None:
        """Nothing: no commit names these files, and whoever had them written removes them."""

    @property
    def records(self) -> int:
        """How many records are no error rows; one may be events of two keys. Known once it is planned."""
        if self._read is None or self._planned is None:
            return 0
        places = [name for name in system_names(self.schema.names) if name not in MARKS]
        return int(self._read.group_by(places).aggregate([]).num_rows) - len(self._planned.refused)

    def cleared(self, collection: Collection) -> pa.Table | None:
        """Events that take all rows away; None if there are none."""
        if self.change is None:
            return None
        events = self._events(collection)
        found = events.filter(events.column(CLEARS))
        return found if found.num_rows else None

    def kept(self, collection: Collection) -> pa.Table | None:
        """Events with values that are the row's; None if there are none."""
        if self.change is None:
            return None
        events = self._events(collection)
        found = events.filter(events.column(KEPT).is_valid())
        return found if found.num_rows else None

    def refused(self, collection: Collection) -> tuple[pa.Table, Sequence[str]] | None:
        """Events that change nothing, because of the rows at the version that is loaded, and why; None: there are none.

        They are the same at every version that has the rows of the tick before.
        """
        if self.kept(collection) is None:
            return None
        self.is_empty(collection)
        found = {} if self._planned is None else self._planned.refused
        if not found:
            return None
        return self._events(collection).take(pa.array(list(found))), list(found.values())

    @cached_property
    def change(self) -> ChangeEnvelope | None:
        return as_change_envelope(self.envelope)

    def _events(self, collection: Collection) -> pa.Table:
        """In the order of ticks and, within a tick, of places: read once, however often they are planned."""
        if self._read is None:
            parts = [_read_file(collection, file, self.schema) for file in self.files]
            order = [(name, "ascending") for name in system_names(self.schema.names) if name not in MARKS]
            self._read = pa.concat_tables([self.schema.empty_table(), *parts]).sort_by(order)
        return self._read

    def _plan(self, collection: Collection) -> Changes:
        events = self._events(collection)
        version = collection.delta_version
        shape = pa.schema([each for each in self.schema if each.name not in MARKS])
        if not events.num_rows:
            return Changes(version, self.keys, shape.empty_table(), shape.empty_table(), 0)
        before = self.rows.before(collection, self._keys_of(collection, events, shape), shape)
        found, refused = self._folded(events, before)
        after = found.select(shape.names).cast(shape)
        change = _hash_of_change(after, before, self.hash_version)
        return Changes(version, self.keys, before, after, change, dict(refused))

    def _folded(self, events: pa.Table, before: pa.Table) -> Settled:
        if self.change is None:
            return Settled(self.envelope.fold(events, before, self.keys), {})
        return self.change.settle(events, before, self.keys)

    def _keys_of(self, collection: Collection, events: pa.Table, shape: pa.Schema) -> pa.Table:
        """Those that the events can change: all that there are, if one of them takes all rows away."""
        names = list(self.keys)
        if self.change is None or not pc.any(events.column(CLEARS)).as_py():
            return events.select(names)
        there = snapshot_of(collection.table, collection.uri, shape).scan(names)
        own = events.filter(pc.invert(events.column(CLEARS))).select(names)
        return pa.concat_tables([own, pa.Table.from_batches(there, own.schema)])


def hash_visible(rows: pa.Table, hash_version: int) -> int:
    """The hash of a state: key and visible columns, so that it does not depend on how the state was reached."""
    return hash_table(_visible(rows), hash_version)


def _hash_of_change(after: pa.Table, before: pa.Table, hash_version: int) -> int:
    """The difference of both states' hashes. They are hashed together: a text that has not changed is digested once."""
    both = pa.concat_tables([_visible(after), _visible(before)]).combine_chunks()
    lanes = [row_hash(hash_version).of_rows(batch) for batch in both.to_batches()]
    if not lanes:
        return 0
    lo, hi = (np.concatenate(each) for each in zip(*lanes, strict=True))
    rows = after.num_rows
    return (hash_rows(Lanes(lo[:rows], hi[:rows])) - hash_rows(Lanes(lo[rows:], hi[rows:]))) % MODULUS


def _visible(rows: pa.Table) -> pa.Table:
    return rows.drop_columns(list(system_names(rows.schema.names)))


def _read_file(collection: Collection, file: FileWritten, schema: pa.Schema) -> pa.Table:
    with collection.filesystem.open_input_file(file.path) as opened:
        return pq.ParquetFile(opened, pre_buffer=False).read(use_threads=False).select(schema.names).cast(schema)
