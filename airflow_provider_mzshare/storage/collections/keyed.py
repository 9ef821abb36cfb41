"""Commits to a collection whose rows change: planned on one version of it, and put at the next one or not at all.

What a tick makes of a row depends on the row that was there. So a plan is never sent again at a later version: if the
collection has moved on, the events are folded anew into what it holds now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.core.schema import TICK, system_names
from airflow_provider_mzshare.core.ticklog.keyed_commits import what_to_put
from airflow_provider_mzshare.envelopes.base import DELETES, KeyedEnvelope
from airflow_provider_mzshare.storage.collections.check import check_collection
from airflow_provider_mzshare.storage.collections.collection import KEEP_LOG, Collection
from airflow_provider_mzshare.storage.collections.commit import (
    Content,
    FileWritten,
    add_files,
    tick_properties,
)
from airflow_provider_mzshare.storage.collections.compaction import COMPRESSION
from airflow_provider_mzshare.storage.collections.damage import DamagedCollection, unreadable
from airflow_provider_mzshare.storage.collections.rows import snapshot_of
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS, hash_table

NO_RETRIES = 0
"""For every commit to such a collection: Delta must not try the version after the next one by itself."""


@dataclass(frozen=True)
class Changes:
    """What a commit is to do to the collection at one version.

    :param version: the one that it was planned on.
    :param rows: the rows that are set, and the keys whose rows are taken away, by ``DELETES``.
    :param more: rows afterwards less rows before.
    :param hash: the hash of the rows afterwards less that of the rows before.
    """

    version: int
    rows: pa.Table
    more: int
    hash: int


@dataclass(eq=False)
class KeyEvents(Content):
    """The events of a tick, or of a group of ticks, that the pass has written beside the collection.

    :param files: their paths are relative to the collection.
    :param schema: of the events.
    :param keys: the columns that make a row's key.
    """

    files: Sequence[FileWritten]
    schema: pa.Schema
    keys: Sequence[str]
    envelope: KeyedEnvelope
    hash_version: int
    _read: pa.Table | None = field(default=None, init=False)
    _planned: Changes | None = field(default=None, init=False)
    _was_put: bool = field(default=False, init=False)

    def is_empty(self, collection: Collection) -> bool:
        """Plan on the version that is loaded. A plan that was put is not used again, whatever the answer was."""
        if self._planned is None or self._was_put or self._planned.version != collection.delta_version:
            self._planned, self._was_put = self._plan(collection), False
        effect = self._planned.rows.num_rows > 0
        several = not effect and self._spans_ticks(collection)
        return what_to_put(has_effect=effect, forced=False, spans_ticks=several) is None

    def _spans_ticks(self, collection: Collection) -> bool:
        return len(pc.unique(self._events(collection).column(TICK))) > 1

    def noted(self, metadata: Mapping[str, str]) -> dict[str, str]:
        changes = self._planned
        if changes is None:
            return dict(metadata)
        told = {"mz_rows": str(changes.more), "mz_hash": f"{changes.hash:032x}", "mz_events": metadata["mz_rows"]}
        return {**metadata, **told}

    def put(self, collection: Collection, mz_timestamp: int, metadata: Mapping[str, str]) -> None:
        changes = self._planned
        if changes is None or self._was_put or changes.version != collection.delta_version:
            raise ValueError("a commit is planned on the version that it follows, and put once")
        self._was_put = True
        crashpoint("keyed_planned")
        if changes.rows.num_rows:
            _merge(collection, changes.rows, self.keys, mz_timestamp, metadata)
        else:
            # A merge without effect would commit nothing, not even its transaction.
            add_files(collection, mz_timestamp, (), metadata, retries=NO_RETRIES)
        crashpoint("keyed_put")

    def let_go(self, collection: Collection, failures: Sequence[Exception]) -> None:
        """Nothing: no commit names these files, and whoever had them written removes them."""

    def _events(self, collection: Collection) -> pa.Table:
        """In the order of ticks and, within a tick, of places: read once, however often they are planned."""
        if self._read is None:
            parts = [_read_file(collection, file, self.schema) for file in self.files]
            order = [(name, "ascending") for name in system_names(self.schema.names) if name != DELETES]
            self._read = pa.concat_tables([self.schema.empty_table(), *parts]).sort_by(order)
        return self._read

    def _plan(self, collection: Collection) -> Changes:
        events = self._events(collection)
        version = collection.delta_version
        shape = self.schema.remove(self.schema.get_field_index(DELETES))
        if not events.num_rows:
            return Changes(version, self.schema.empty_table(), 0, 0)
        before = rows_of_keys(collection, events.select(list(self.keys)), shape)
        after = self.envelope.fold(events, before, self.keys)
        gone = before.join(after.select(list(self.keys)), list(self.keys), join_type="left anti")
        rows = pa.concat_tables([_flagged(after.select(shape.names), False), _flagged(gone.select(shape.names), True)])
        hashes = [hash_visible(table, self.hash_version) for table in (after, before)]
        more, hash = after.num_rows - before.num_rows, (hashes[0] - hashes[1]) % MODULUS
        return Changes(version, rows.cast(self.schema), more, hash)


def hash_visible(rows: pa.Table, hash_version: int) -> int:
    """The hash of a state: key and visible columns, so that it does not depend on how the state was reached."""
    system = system_names(rows.schema.names)
    return hash_table(rows.drop_columns(list(system)), hash_version)


def rows_of_keys(collection: Collection, keys: pa.Table, shape: pa.Schema) -> pa.Table:
    """The rows, as last loaded, whose key is among ``keys``, which may have a key several times."""
    names = keys.schema.names
    wanted = keys.group_by(names).aggregate([])
    values = {name: wanted.column(name).unique() for name in names}

    def among(part: pa.RecordBatch) -> pa.RecordBatch:
        # Not by Arrow's own filter: it cannot compare text with what a merge has written, which are views of text.
        return part.filter(reduce(pc.and_, (pc.is_in(part.column(name), each) for name, each in values.items())))

    try:
        parts = snapshot_of(collection.table, collection.uri, shape).scan(shape.names)
        near = pa.Table.from_batches(map(among, parts), shape)
    except (OSError, pa.ArrowException, DeltaError) as error:
        if damages := check_collection(collection.root, collection.collection_id).damages:
            raise DamagedCollection(collection.collection_id, damages) from error
        raise unreadable(collection.uri, collection.collection_id, error) from error
    if len(names) == 1:
        return near
    return near.join(wanted, names, join_type="left semi").select(shape.names)


def _flagged(rows: pa.Table, deletes: bool) -> pa.Table:
    return rows.append_column(DELETES, pa.repeat(deletes, rows.num_rows))


def _read_file(collection: Collection, file: FileWritten, schema: pa.Schema) -> pa.Table:
    with collection.filesystem.open_input_file(file.path) as opened:
        return pq.ParquetFile(opened, pre_buffer=False).read(use_threads=False).select(schema.names).cast(schema)


def _merge(
    collection: Collection, changes: pa.Table, keys: Sequence[str], mz_timestamp: int, metadata: Mapping[str, str]
) -> None:
    columns = {_quoted(name): f"s.{_quoted(name)}" for name in changes.schema.names if name != DELETES}
    present = [each.name for each in collection.table.schema().fields]
    columns |= {_quoted(name): "NULL" for name in present if name not in changes.schema.names}
    (
        collection.table.merge(
            changes,
            predicate=" AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in keys),
            source_alias="s",
            target_alias="t",
            writer_properties=COMPRESSION,
            commit_properties=tick_properties(collection, mz_timestamp, metadata, retries=NO_RETRIES),
            post_commithook_properties=KEEP_LOG,
        )
        .when_matched_delete(f"s.{_quoted(DELETES)}")
        .when_matched_update(columns)
        .when_not_matched_insert(columns, f"NOT s.{_quoted(DELETES)}")
        .execute()
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
