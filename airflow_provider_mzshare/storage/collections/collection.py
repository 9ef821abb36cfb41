"""Collections: the Delta tables behind our tables, created and kept open. Rows are written in ``commits`` only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import BadCollection, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections import log
from airflow_provider_mzshare.storage.collections.damage import brief, unreadable
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.fanout.plan import bounded_columns

ID_PROPERTY = "mzshare.collection"
KEY_PROPERTY = "mzshare.key"
"""The columns of the key, as a JSON list; only of collections whose rows change."""
VECTORS_PROPERTY = "delta.enableDeletionVectors"
_WITH_VECTORS: dict[str, str | None] = {
    VECTORS_PROPERTY: "true",
    # Every vector that takes the place of another leaves a mark in the log: checkpoints would carry them for a week.
    # Files are removed by maintenance alone, which does not look at these marks.
    "delta.deletedFileRetentionDuration": "interval 1 minute",
}
CHECKPOINT_INTERVAL = 10
KEEP_LOG = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
"""For every commit: old log entries stay, because reads as of a time need them."""
_DESCRIPTION = "Written by mzshare, one commit per tick. Read it at a version that the catalog names."


def create_collection(
    root: str, collection_id: CollectionId, schema: pa.Schema, *, keys: Sequence[str] = (), vectors: bool = True
) -> None:
    """Create the empty table at version 0, unless it exists. If two do so at once, one creates it and both return.

    :param keys: the columns that make a row's key, for a collection whose rows change.
    :param vectors: of such a collection: rows are taken away by deletion vectors, not by writing files anew.
    """
    uri = collection_uri(root, collection_id)
    try:
        DeltaTable.create(
            uri,
            schema,
            mode="error",
            description=_DESCRIPTION,
            configuration=_properties(collection_id, schema, keys, vectors=vectors),
            # A retry would commit a second creation, as version 1, after the first one.
            commit_properties=CommitProperties(max_commit_retries=0),
            raise_if_key_not_exists=False,
        )
    except (DeltaError, OSError) as error:
        # Another app may have created the table first: if there is one now, the error does not matter.
        if not _is_table(uri):
            raise WarehouseUnreachable(collection_id, f"it cannot be created: {brief(error)}") from error
    found = Collection.open(root, collection_id).table.schema()
    if found != Schema.from_arrow(schema):
        raise BadCollection(collection_id, "it exists with other columns")


def _properties(
    collection_id: CollectionId, schema: pa.Schema, keys: Sequence[str], *, vectors: bool
) -> dict[str, str | None]:
    changing = {KEY_PROPERTY: json.dumps(list(keys)), "delta.enableChangeDataFeed": "true"} if keys else {}
    return {
        **changing,
        **(_WITH_VECTORS if keys and vectors else {}),
        ID_PROPERTY: collection_id,
        "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
        # Reads as of a time need old log entries: only maintenance knows which may be removed.
        "delta.enableExpiredLogCleanup": "false",
        "delta.dataSkippingStatsColumns": ",".join(bounded_columns(schema)),
    }


def collection_exists(root: str, collection_id: CollectionId) -> bool:
    return _is_table(collection_uri(root, collection_id))


def _is_table(uri: str) -> bool:
    try:
        return DeltaTable.is_deltatable(uri)
    except (DeltaError, OSError):
        return False


class Collection:
    """One Delta table, kept open. Use it from one thread at a time.

    :param root: the warehouse.
    :param collection_id: also the folder's name and the application id of every commit.
    :param table: the loaded table; it is as old as the last ``refresh``.
    """

    def __init__(self, root: str, collection_id: CollectionId, table: DeltaTable) -> None:
        self.root, self.collection_id, self.table = root, collection_id, table

    @classmethod
    def open(cls, root: str, collection_id: CollectionId) -> Collection:
        return cls(root, collection_id, _load(collection_uri(root, collection_id), collection_id))

    @property
    def uri(self) -> str:
        return collection_uri(self.root, self.collection_id)

    @property
    def delta_version(self) -> int:
        """The version of the log as last loaded."""
        return self.table.version()

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The columns that make a row's key; nothing for a collection whose rows never change."""
        return tuple(json.loads(self.table.metadata().configuration.get(KEY_PROPERTY) or "[]"))

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as last loaded."""
        return pa.schema(self.table.schema().to_arrow())

    @cached_property
    def has_vectors(self) -> bool:
        """Whether rows are taken away by deletion vectors; only of a collection that has keys."""
        return bool(self.keys) and self.table.metadata().configuration.get(VECTORS_PROPERTY) == "true"

    @cached_property
    def filesystem(self) -> pafs.FileSystem:
        """The collection's folder; paths are relative to it."""
        return log.open_filesystem(self.uri)

    def refresh(self) -> None:
        """Load the commits that were made since."""
        seen = self.delta_version
        try:
            self.table.update_incremental()
        except (DeltaError, OSError):
            self.table = _load(self.uri, self.collection_id)
        # A deleted folder is no error to an update, which keeps the old state: a commit from there would begin a
        # second log. A folder restored from a copy has lost ticks that the catalog counts as written.
        if self.delta_version < seen or not log.has_entry(self.filesystem, self.delta_version):
            raise BadCollection(self.collection_id, f"log entry {seen} is gone from its folder")

    def widen(self, schema: pa.Schema) -> None:
        """Add the columns of a newer spec that the collection does not have. Earlier versions keep their columns."""
        if not self._missing(schema):
            return
        # A commit of our own may have come since: then this one would be refused.
        self.refresh()
        missing = self._missing(schema)
        if not missing:
            return
        try:
            # A second try by Delta itself could land behind a commit that was planned on fewer columns.
            retries = CommitProperties(max_commit_retries=0) if self.keys else None
            self.table.alter.add_columns(missing, commit_properties=retries, post_commithook_properties=KEEP_LOG)
        except DeltaError:
            # Another app may have added them: only columns that are still missing are an error.
            self.refresh()
            if self._missing(schema):
                raise

    def _missing(self, schema: pa.Schema) -> list[Field]:
        present = {field.name: field.type for field in self.table.schema().fields}
        wanted = Schema.from_arrow(schema).fields
        if any(present.get(field.name, field.type) != field.type for field in wanted):
            raise BadCollection(self.collection_id, "it exists with other columns")
        return [field for field in wanted if field.name not in present]

    def stored_version(self) -> int | None:
        """The ``mz_timestamp`` of the newest tick in the collection, read anew; None before the first."""
        self.refresh()
        return self.table.transaction_version(self.collection_id)

    def find_tick(self, mz_timestamp: int) -> log.TickCommit | None:
        """The log entry that carries a tick, among those loaded."""
        return log.find_tick(self.filesystem, self.collection_id, mz_timestamp, newest=self.delta_version)

    def ticks_after(self, mz_timestamp: int) -> list[log.TickCommit]:
        """The log entries, among those loaded, that carry ticks later than a time; oldest first."""
        newest = self.delta_version
        found = log.ticks_after(self.filesystem, self.collection_id, mz_timestamp, newest=newest)
        if found is None:
            raise BadCollection(self.collection_id, f"its log does not reach back to tick time {mz_timestamp}")
        return found


def _load(uri: str, collection_id: CollectionId) -> DeltaTable:
    try:
        table = DeltaTable(uri)
    except TableNotFoundError as error:
        raise BadCollection(collection_id, f"there is no Delta table at {uri}") from error
    except (DeltaError, OSError) as error:
        raise unreadable(uri, collection_id, error) from error
    found = table.metadata().configuration.get(ID_PROPERTY)
    if found != collection_id:
        raise BadCollection(collection_id, f"its folder holds collection {found!r}")
    return table
