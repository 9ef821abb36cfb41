"""Rows that change by delta-rs' merge: each file with a changed row is written anew, and every reader can read that.

What a commit costs follows the size of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.envelopes.base import DELETES
from airflow_provider_mzshare.storage.collections.check import raise_if_damaged
from airflow_provider_mzshare.storage.collections.collection import KEEP_LOG, Collection
from airflow_provider_mzshare.storage.collections.commit import add_files, tick_properties
from airflow_provider_mzshare.storage.collections.compaction import COMPRESSION
from airflow_provider_mzshare.storage.collections.damage import unreadable
from airflow_provider_mzshare.storage.collections.keyed import Changes, KeyedRows
from airflow_provider_mzshare.storage.collections.rows import snapshot_of

NO_RETRIES = 0
"""For every commit to such a collection: Delta must not try the version after the next one by itself."""


class MergedRows(KeyedRows):
    def before(self, collection: Collection, keys: pa.Table, shape: pa.Schema) -> pa.Table:
        return rows_of_keys(collection, keys, shape)

    def put(
        self, collection: Collection, changes: Changes, mz_timestamp: int, metadata: Mapping[str, str]
    ) -> int | None:
        if changes.have_effect:
            _merge(collection, _flagged_rows(changes), changes.keys, mz_timestamp, metadata)
        else:
            # A merge without effect would commit nothing, not even its transaction.
            add_files(collection, mz_timestamp, (), metadata, retries=NO_RETRIES)
        return None


MERGED = MergedRows()


def _flagged_rows(changes: Changes) -> pa.Table:
    """The rows that are set, and the rows that are taken away, by ``DELETES``."""
    keys, names = list(changes.keys), changes.after.schema.names
    gone = changes.before.join(changes.after.select(keys), keys, join_type="left anti").select(names)
    return pa.concat_tables(
        [_flagged(changes.after, False), _flagged(gone, True).cast(_flagged(changes.after, False).schema)]
    )


def _flagged(rows: pa.Table, deletes: bool) -> pa.Table:
    return rows.append_column(DELETES, pa.repeat(deletes, rows.num_rows))


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
        raise_if_damaged(collection, error)
        raise unreadable(collection.uri, collection.collection_id, error) from error
    if len(names) == 1:
        return near
    return near.join(wanted, names, join_type="left semi").select(shape.names)


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
