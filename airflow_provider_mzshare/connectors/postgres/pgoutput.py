"""Takes apart what pgoutput sends, protocol 1, and puts row changes together as messages of a journal. No input.

A row change is kept as it came: of each only the first byte is looked at, and all else is done for many at once.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_mzshare.journal.messages import MESSAGES

CHANGES = frozenset(b"IUD")
_BEGIN, _COMMIT, _RELATION, _TRUNCATE = b"B"[0], b"C"[0], b"R"[0], b"T"[0]
_BEGIN_HEAD, _COMMIT_HEAD = struct.Struct(">xqqI"), struct.Struct(">xxQQq")
_RELATION_HEAD, _COLUMN_TAIL, _TRUNCATE_HEAD = struct.Struct(">xI"), struct.Struct(">Ii"), struct.Struct(">xIx")
_EPOCH_US = 946_684_800_000_000
"""Postgres counts from the year 2000 on."""
_KEY = np.dtype([("xid", ">u4"), ("oid", ">u4"), ("index", ">u8")])

Relation = Mapping[str, Any]
"""As the prologue of a segment has it."""


class _Run(NamedTuple):
    """Changes of one transaction, in a row."""

    messages: int
    position: int
    time: int
    xid: int
    first: int


class Group:
    """Row changes as they come, until ``take`` makes messages of them.

    A relation that is new is added to what all changes of the group are decoded with; one that has changed ends the
    group, because of the changes before it.
    """

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self.frames: list[bytes] = []
        self.boundary: int | None = None
        """The end of the last whole transaction, since it was taken last."""
        self.is_open = False
        """A transaction's end was not told yet."""
        self._relations = {relation["oid"]: relation for relation in relations}
        self._changed: Relation | None = None
        self._is_new = bool(self._relations)
        self._position = self._time = self._xid = self._index = self._begun = 0
        self._runs: list[_Run] = []
        self._truncated: list[tuple[int, int]] = []

    def is_full(self) -> bool:
        """What came last belongs to the next group."""
        return self._changed is not None

    @property
    def relations(self) -> tuple[Relation, ...]:
        """All that are known, also the one that belongs to the next group."""
        known = self._relations | ({self._changed["oid"]: self._changed} if self._changed else {})
        return tuple(known.values())

    def note(self, frame: bytes) -> None:
        """A frame that is no change of a row. Those that say nothing of rows are passed over."""
        kind = frame[0]
        if kind == _BEGIN:
            self._position, self._time, self._xid = _BEGIN_HEAD.unpack(frame)
            self._index, self._begun, self.is_open = 0, len(self.frames), True
        elif kind == _COMMIT:
            self._end_run()
            self.boundary, self.is_open = _COMMIT_HEAD.unpack(frame)[1], False
        elif kind == _RELATION:
            self._note_relation(read_relation(frame))
        elif kind == _TRUNCATE:
            for oid in truncated(frame):
                self._truncated.append((len(self.frames), oid))
                self.frames.append(frame)

    def take(self) -> tuple[pa.RecordBatch, bytes | None]:
        """The messages, and what they and all after them are decoded with, if that is new."""
        if self.is_open:
            self._end_run()
        messages = self._messages()
        prologue = _prologue(self._relations.values()) if self._is_new and self.frames else None
        self._is_new = self._is_new and not self.frames
        self.frames, self._runs, self._truncated, self._begun, self.boundary = [], [], [], 0, None
        if self._changed is not None:
            self._relations[self._changed["oid"]] = self._changed
            self._changed, self._is_new = None, True
        return messages, prologue

    def _end_run(self) -> None:
        count = len(self.frames) - self._begun
        if count:
            self._runs.append(_Run(count, self._position, self._time, self._xid, self._index))
        self._index, self._begun = self._index + count, len(self.frames)

    def _note_relation(self, relation: Relation) -> None:
        known = self._relations.get(relation["oid"])
        if known == relation:
            return
        if known is not None and self.frames:
            self._changed = relation
        else:
            self._relations[relation["oid"]] = relation
            self._is_new = True

    def _messages(self) -> pa.RecordBatch:
        values = pa.array(self.frames, pa.binary())
        runs = np.array(self._runs, np.int64).reshape(-1, 5)
        counts = runs[:, 0]
        positions, times, xids = (np.repeat(runs[:, column], counts) for column in (1, 2, 3))
        indexes = np.arange(len(self.frames)) - np.repeat(np.cumsum(counts) - counts - runs[:, 4], counts)
        columns = [
            pa.array(positions),
            pa.array(times + _EPOCH_US).view(MESSAGES.field("timestamp").type),
            _keys(xids, self._oids(values), indexes),
            values,
            pa.nulls(len(self.frames), MESSAGES.field("headers").type),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=MESSAGES)

    def _oids(self, values: pa.Array) -> Any:
        """The four bytes behind the first one, of each."""
        if not len(values):
            return np.zeros(0, np.uint32)
        starts = np.frombuffer(values.buffers()[1], np.int32, len(values))
        data = np.frombuffer(values.buffers()[2], np.uint8)
        oids = np.ascontiguousarray(data[starts[:, None] + np.arange(1, 5)]).view(">u4").ravel()
        if self._truncated:
            oids = oids.copy()
            at, names = zip(*self._truncated, strict=True)
            oids[list(at)] = names
        return oids


def _keys(xids: Any, oids: Any, indexes: Any) -> pa.Array:
    keys = np.empty(len(xids), _KEY)
    keys["xid"], keys["oid"], keys["index"] = xids, oids, indexes
    ends = np.arange(len(xids) + 1, dtype=np.int32) * _KEY.itemsize
    return pa.Array.from_buffers(pa.binary(), len(xids), [None, pa.py_buffer(ends), pa.py_buffer(keys.tobytes())])


def read_relation(frame: bytes) -> Relation:
    (oid,) = _RELATION_HEAD.unpack_from(frame)
    schema, at = _text(frame, _RELATION_HEAD.size)
    name, at = _text(frame, at)
    identity, count = chr(frame[at]), int.from_bytes(frame[at + 1 : at + 3], "big")
    at += 3
    columns = []
    for _ in range(count):
        is_key = bool(frame[at] & 1)
        column, at = _text(frame, at + 1)
        kind, mod = _COLUMN_TAIL.unpack_from(frame, at)
        at += _COLUMN_TAIL.size
        columns.append({"name": column, "type": kind, "mod": mod, "key": is_key})
    return {"oid": oid, "schema": schema or "pg_catalog", "name": name, "identity": identity, "columns": columns}


def truncated(frame: bytes) -> tuple[int, ...]:
    """The oids of the relations that a TRUNCATE has emptied."""
    (count,) = _TRUNCATE_HEAD.unpack_from(frame)
    return struct.unpack_from(f">{count}I", frame, _TRUNCATE_HEAD.size)


def _text(frame: bytes, at: int) -> tuple[str, int]:
    end = frame.index(0, at)
    # What is no UTF-8 is a name in a database of another encoding: it stays recognizable.
    return frame[at:end].decode("utf-8", "backslashreplace"), end + 1


def _prologue(relations: Iterable[Relation]) -> bytes:
    said = {"version": 1, "relations": sorted(relations, key=lambda one: int(one["oid"]))}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
