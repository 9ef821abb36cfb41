"""A compaction by a process that nobody knows of: its entry is a foreign one for the app that writes the table."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import TARGET_SIZE
from airflow_provider_mzshare.storage.collections.vectors.committing import put_rewritten
from airflow_provider_mzshare.storage.collections.vectors.live_files import files_at
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewriting
from airflow_provider_mzshare.storage.collections.vectors.state import KeyState

TRIES = 50


def rewrite_apart(root: str, name: CollectionId, folder: Path) -> None:
    """All rows of a table with deletion vectors move to other files, whatever the app commits meanwhile."""
    for _ in range(TRIES):
        collection = Collection.open(root, name)
        with closing(KeyState(folder, collection.keys)) as state:
            state.bring_to(collection)
            files = list(files_at(collection).files.values())
            rewriting = Rewriting(collection, collection.schema, state.mirror, state.numbers, target_size=TARGET_SIZE)
            if put_rewritten(collection, state, rewriting.run(files)):
                return
    raise AssertionError(f"{name} could not be rewritten")
