"""The log entries that we write ourselves, as lines of JSON. Delta-rs has no call that names vectors. Puts nothing."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_provider_mzshare.storage.collections.log import ENTRY_ID
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile

_ENGINE = "mzshare"

Action = dict[str, Any]


def new_entry_id() -> str:
    return uuid.uuid4().hex


def to_bytes(actions: Iterable[Action]) -> bytes:
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions).encode()


def commit_info(entry_id: str, operation: str, metadata: Mapping[str, str]) -> Action:
    told = {"operation": operation, "operationParameters": {}, "engineInfo": _ENGINE, **metadata, ENTRY_ID: entry_id}
    return {"commitInfo": {"timestamp": now_ms(), **told}}


def transaction(app_id: str, version: int) -> Action:
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": now_ms()}}


def add(file: LiveFile, *, data_change: bool) -> Action:
    stats = _loose(file.stats) if file.vector else file.stats
    fields: Action = {
        "path": file.path,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified,
        "dataChange": data_change,
        "stats": stats,
    }
    return {"add": fields | _vector(file.vector)}


def remove(file: LiveFile, *, data_change: bool) -> Action:
    """Names the file together with the vector that it has had: both make its identity."""
    fields: Action = {
        "path": file.path,
        "deletionTimestamp": now_ms(),
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": file.size,
    }
    return {"remove": fields | _vector(file.vector)}


def changes(path: str, size: int) -> Action:
    return {"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}


def _vector(vector: Vector | None) -> Action:
    return {"deletionVector": vector.to_log()} if vector else {}


def _loose(stats: str) -> str:
    """Of a file with a vector, statistics are bounds only: its least row may be gone."""
    found = json.loads(stats) if stats else {}
    return json.dumps({**found, "tightBounds": False}, separators=(",", ":"))


def now_ms() -> int:
    return int(time.time() * 1000)
