"""Commits with vectors: the rows that a commit sets in a new file, vectors on the rows that they replace.

Planned on the version that the state describes, and put at the next one or not at all. Everything that an entry names
is on the disk before the entry is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError
from pyroaring import BitMap

from airflow_provider_mzshare.core.ticklog.keyed_commits import put_counts, rows_to_carry
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.storage.collections.check import raise_if_damaged
from airflow_provider_mzshare.storage.collections.collection import CHECKPOINT_INTERVAL, Collection
from airflow_provider_mzshare.storage.collections.commit import MAX_FILE_AGE_S, stamped
from airflow_provider_mzshare.storage.collections.keyed import Changes, KeyedRows
from airflow_provider_mzshare.storage.collections.vectors import entries, puts
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import vector_file
from airflow_provider_mzshare.storage.collections.vectors.files import write_changes, write_rows
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile, LiveFiles, files_at
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewritten
from airflow_provider_mzshare.storage.collections.vectors.state import Before, Changed, KeyState
from airflow_provider_mzshare.storage.crashpoints import crashpoint

log = logging.getLogger(__name__)

CHANGE_TYPE = "_change_type"
_OLD, _NEW = "_mz_old", "_mz_new"


class PutRefused(TransientError):
    """Another entry stands at the version that a commit was planned for: it is planned anew."""


class PutUnclear(TransientError):
    """The entry was put, and it is not sure that it is part of the log: only a reload tells."""


class VectorRows(KeyedRows):
    """:param state: of the collection; nobody else uses it.
    :param most: see ``KeyState.bring_to``: raises ``IndexLate`` before anything is written.
    """

    def __init__(self, state: KeyState, most: int | None = None) -> None:
        self._state, self._most = state, most
        self._found: Before | None = None

    def before(self, collection: Collection, keys: pa.Table, shape: pa.Schema) -> pa.Table:
        try:
            self._state.bring_to(collection, self._most)
            self._found = self._state.find(keys.group_by(keys.schema.names).aggregate([]), shape)
        except (OSError, ValueError, LookupError, pa.ArrowException, DeltaError) as error:
            # What does not fit together is made anew by the next attempt.
            self._state.drop()
            raise_if_damaged(collection, error)
            raise
        return self._found.rows

    def put(
        self, collection: Collection, changes: Changes, mz_timestamp: int, metadata: Mapping[str, str]
    ) -> int | None:
        found = self._found if changes.before.num_rows else None
        written = self._written(collection, changes, found)
        crashpoint("vectors_written")
        entry_id = entries.new_entry_id()
        actions = [
            entries.commit_info(entry_id, "MERGE", stamped(mz_timestamp, metadata)),
            entries.transaction(collection.collection_id, mz_timestamp),
            *written.actions,
        ]
        version = changes.version + 1
        _put(collection, version, actions, written.paths)
        if found is not None or written.added is not None:
            nothing = Before(changes.before, np.array([], np.uint64), np.array([], np.uint64))
            self._known(Changed(version, found or nothing, written.touched, written.added, changes.after), collection)
        else:
            self._state.passed(version)
        checkpoint(collection, version)
        return version

    def _known(self, changed: Changed, collection: Collection) -> None:
        """The commit is there: what becomes of the state is no failure of it."""
        try:
            self._state.committed(changed)
        except (OSError, ValueError, pa.ArrowException) as error:
            log.warning("%s: its index has to be made anew: %s", collection.collection_id, error)

    def _written(self, collection: Collection, changes: Changes, found: Before | None) -> _Written:
        files = collection.filesystem
        added = write_rows(collection.uri, files, changes.after) if changes.after.num_rows else None
        touched: list[tuple[LiveFile, BitMap]] = []
        actions: list[entries.Action] = []
        paths = [added.path] if added else []
        if found is not None:
            grown = self._state.grown(found.locations)
            vectors = vector_file([bitmap for _, bitmap in grown])
            puts.write_file(collection.uri, vectors.path, vectors.content)
            for (file, bitmap), vector in zip(grown, vectors.vectors, strict=True):
                actions.append(entries.remove(file, data_change=True))
                touched.append((file.with_vector(vector), bitmap))
            path, size = write_changes(collection.uri, files, change_rows(changes))
            actions += [entries.add(file, data_change=True) for file, _ in touched]
            actions.append(entries.changes(path, size))
            paths += [vectors.path, path]
        if added:
            actions.append(entries.add(added, data_change=True))
        puts.flush(collection.uri, paths)
        return _Written(actions, paths, touched, added)


@dataclass(frozen=True)
class _Written:
    actions: Sequence[entries.Action]
    paths: Sequence[str]
    touched: Sequence[tuple[LiveFile, BitMap]]
    added: LiveFile | None


def change_rows(changes: Changes) -> pa.Table:
    """Old and new images of all changes, for the change feed. Readers of a commit with such a file read nothing else.

    A commit that only adds rows has none: the rows that it adds are its changes.
    """
    keys = list(changes.keys)
    old = _numbered(changes.before.select(keys), _OLD)
    new = _numbered(changes.after.select(keys), _NEW)
    pairs = old.join(new, keys, join_type="full outer")
    at_old, at_new = pairs.column(_OLD), pairs.column(_NEW)
    both = pc.and_(at_old.is_valid(), at_new.is_valid())
    names = changes.after.schema.names
    images = [
        (changes.before, at_old.filter(both), "update_preimage"),
        (changes.after, at_new.filter(both), "update_postimage"),
        (changes.before, at_old.filter(at_new.is_null()), "delete"),
        (changes.after, at_new.filter(at_old.is_null()), "insert"),
    ]
    return pa.concat_tables(
        [_typed(rows.select(names).take(places), kind) for rows, places, kind in images if len(places)]
    )


def _numbered(rows: pa.Table, name: str) -> pa.Table:
    return rows.append_column(name, pa.array(np.arange(rows.num_rows)))


def _typed(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind), rows.num_rows))


def put_rewritten(collection: Collection, state: KeyState | None, done: Rewritten, most: int | None = None) -> bool:
    """Put a compaction on the newest version; False if it no longer stands, or an entry came first. Then it is dropped.

    Called by the thread that commits ticks: it knows the newest version, and nobody of its own comes between.

    :param state: None for a collection without vectors. :param most: see ``KeyState.bring_to``.
    """
    collection.refresh()
    if state is not None:
        state.bring_to(collection, most)
    newest = state.files if state is not None and state.files is not None else files_at(collection)
    live = newest.files
    gone = _gone_since(done, live, state)
    if gone is None or not _are_there(collection, done.outputs):
        _drop(collection, state, done)
        return False
    carried = done.carried(gone)
    outputs, paths = _outputs(collection, done, carried)
    actions = [
        entries.commit_info(done.entry_id, "OPTIMIZE", {"mz_compaction": "true"}),
        *(entries.remove(live[path], data_change=False) for path in done.inputs),
        *(entries.add(file, data_change=False) for file in outputs.values()),
    ]
    crashpoint("compaction_written")
    version = newest.version + 1
    if state is not None:
        state.hold(done, version)
    try:
        _put(collection, version, actions, paths)
    except (PutRefused, PutUnclear, DeltaError, OSError) as error:
        if state is not None and isinstance(error, PutRefused):
            state.discard(done)
        log.info("%s: a compaction was not put: %s", collection.collection_id, error)
        return False
    if state is not None:
        left = {path: file for path, file in live.items() if path not in done.inputs}
        state.rewritten(done, LiveFiles(version, {**left, **outputs}), carried)
    crashpoint("compaction_put")
    checkpoint(collection, version)
    return True


def _drop(collection: Collection, state: KeyState | None, done: Rewritten) -> None:
    if state is not None:
        state.discard(done)
    _discard(collection, [file.path for file in done.outputs])


def _are_there(collection: Collection, files: Sequence[LiveFile]) -> bool:
    """Somebody else's clean-up may have taken what waited: no entry named it."""
    infos = collection.filesystem.get_file_info([file.path for file in files])
    return all(info.size == file.size for info, file in zip(infos, files, strict=True))


def _gone_since(done: Rewritten, live: Mapping[str, LiveFile], state: KeyState | None) -> Mapping[str, BitMap] | None:
    """By input, the rows that were taken away since it was read; None if the compaction does not stand."""
    # Files that no entry names are removed when they are old: these must be named before, or never.
    if any(entries.now_ms() - file.modified > MAX_FILE_AGE_S * 1000 for file in done.outputs):
        return None
    if state is not None and not state.is_mirrored(done):
        return None
    return rows_to_carry(done.inputs, {path: state.bitmap(path) if state else BitMap() for path in live})


def _outputs(
    collection: Collection, done: Rewritten, carried: Mapping[str, BitMap]
) -> tuple[dict[str, LiveFile], list[str]]:
    """The new files with their vectors, and the paths of all that is named then, on the disk."""
    outputs = {file.path: file for file in done.outputs}
    paths = list(outputs)
    if carried:
        vectors = vector_file(list(carried.values()))
        puts.write_file(collection.uri, vectors.path, vectors.content)
        outputs |= {path: outputs[path].with_vector(v) for path, v in zip(carried, vectors.vectors, strict=True)}
        paths.append(vectors.path)
        puts.flush(collection.uri, [vectors.path])
    return outputs, paths


def _put(collection: Collection, version: int, actions: Sequence[entries.Action], paths: Sequence[str]) -> None:
    """One attempt, at one version. Whatever it raises but PutRefused, only the log knows whether it is there."""
    answer = puts.put_entry(collection.uri, version, entries.to_bytes(actions))
    if answer == "refused":
        _discard(collection, paths)
        raise PutRefused(f"collection {collection.collection_id}: log entry {version} is another's")
    crashpoint("entry_put")
    listed, checkpoints = puts.list_entries(collection.uri, version - 1)
    if not put_counts(version, is_ours=True, entries=listed, checkpoints=checkpoints):
        raise PutUnclear(f"collection {collection.collection_id}: log entry {version} was put into a hole of the log")


def _discard(collection: Collection, paths: Sequence[str]) -> None:
    """Remove files that no entry will name. Errors are ignored, since maintenance removes what is left."""
    for path in paths:
        with suppress(OSError, DeltaError):
            collection.filesystem.delete_file(path)


def checkpoint(collection: Collection, version: int) -> None:
    """Every so many versions, as delta-rs does after commits of its own. Without one, only loading takes longer."""
    if version % CHECKPOINT_INTERVAL:
        return
    with suppress(DeltaError, OSError):
        collection.refresh()
        collection.table.create_checkpoint()
