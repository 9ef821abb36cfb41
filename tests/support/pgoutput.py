"""Frames of pgoutput: built, read by a plain loop, and recorded from a real server as a journal has them.

The plain loop knows nothing of the program's decoder, so that it can be compared with it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa

from airflow_provider_mzshare.journal.messages import MESSAGES

MICROS_OF_2000 = 946_684_800_000_000
SETTINGS = ("DateStyle = 'ISO, MDY'", "TimeZone = 'UTC'", "bytea_output = 'hex'", "extra_float_digits = 1")


class Unsent:
    """A value that was not sent because it has not changed."""

    def __repr__(self) -> str:
        return "UNSENT"


UNSENT = Unsent()
Value = bytes | Unsent | None
Tuple = Sequence[Value]


class Bad(Exception):
    """A frame that is no change of its relation."""


class Message(NamedTuple):
    lsn: int
    index: int
    xid: int
    oid: int
    frame: bytes
    micros: int = 0


class Change(NamedTuple):
    lsn: int
    index: int
    xid: int
    op: str
    before: Tuple | None
    after: Tuple | None


# ── built ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tuple_of(values: Tuple) -> bytes:
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if isinstance(value, bytes):
            parts.append(b"t" + struct.pack(">I", len(value)) + value)
        else:
            parts.append(b"n" if value is None else b"u")
    return b"".join(parts)


def frame_of(oid: int, op: str, old: tuple[str, Tuple] | None = None, new: Tuple | None = None) -> bytes:
    if op == "T":
        return struct.pack(">cIBI", b"T", 1, 0, oid)
    before = b"" if old is None else old[0].encode() + tuple_of(old[1])
    after = b"" if new is None else b"N" + tuple_of(new)
    return struct.pack(">cI", op.encode(), oid) + before + after


def relation_of(oid: int, columns: Iterable[tuple[str, int, bool]], identity: str = "d") -> dict[str, Any]:
    """:param columns: names, types and whether they are part of the key."""
    said = [{"name": name, "type": kind, "mod": -1, "key": key} for name, kind, key in columns]
    return {"oid": oid, "schema": "public", "name": f"t{oid}", "identity": identity, "columns": said}


def prologue_of(relations: Iterable[Mapping[str, Any]]) -> bytes:
    return json.dumps({"version": 1, "relations": list(relations)}).encode()


def messages_of(messages: Sequence[Message]) -> pa.RecordBatch:
    columns = [
        [each.lsn for each in messages],
        [each.micros for each in messages],
        [struct.pack(">IIQ", each.xid, each.oid, each.index) for each in messages],
        [each.frame for each in messages],
        [None] * len(messages),
    ]
    typed = [pa.array(values, kind.type) for values, kind in zip(columns, MESSAGES, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=MESSAGES)


# ── read by a plain loop ──────────────────────────────────────────────────────────────────────────────────────────────


def plain_change(message: Message, relation: Mapping[str, Any]) -> Change:
    """Raises Bad."""
    frame, lsn, index, xid = message.frame, message.lsn, message.index, message.xid
    op = chr(frame[0]) if frame else ""
    if op == "T":
        return Change(lsn, index, xid, "t", None, None)
    if op not in ("I", "U", "D") or frame[1:5] != struct.pack(">I", relation["oid"]):
        raise Bad
    at, before, whole = 5, None, frame[5:6] == b"O"
    if op != "I" and frame[5:6] in (b"K", b"O"):
        before, at = _plain_tuple(frame, 6, len(relation["columns"]))
    elif op == "D":
        raise Bad
    after = None
    if op != "D":
        if frame[at : at + 1] != b"N":
            raise Bad
        after, at = _plain_tuple(frame, at + 1, len(relation["columns"]))
    if at != len(frame):
        raise Bad
    if before and after:
        known = [whole or column["key"] for column in relation["columns"]]
        after = [old if new is UNSENT and mine else new for old, new, mine in zip(before, after, known, strict=True)]
    # What is not sent of an old row is not known.
    before = before and [None if value is UNSENT else value for value in before]
    return Change(lsn, index, xid, {"I": "c", "U": "u", "D": "d"}[op], before, after)


def _plain_tuple(frame: bytes, at: int, count: int) -> tuple[list[Value], int]:
    if frame[at : at + 2] != struct.pack(">H", count):
        raise Bad
    at += 2
    found: list[Value] = []
    for _ in range(count):
        kind = frame[at : at + 1]
        if kind == b"t":
            if at + 5 > len(frame):
                raise Bad
            end = at + 5 + struct.unpack_from(">I", frame, at + 1)[0]
            if end > len(frame):
                raise Bad
            found.append(frame[at + 5 : end])
            at = end
        elif kind in (b"n", b"u"):
            found.append(None if kind == b"n" else UNSENT)
            at += 1
        else:
            raise Bad
    return found, at


def changes_in(batch: pa.RecordBatch) -> list[Change]:
    """What the program's decoder has made, for a comparison."""
    found = []
    for row in batch.to_pylist():
        said = row["row"]
        before, after = (None if said[part] is None else list(said[part].values()) for part in ("before", "after"))
        for number in said["unsent"] or ():
            assert after[number] is None
            after[number] = UNSENT
        found.append(Change(row["lsn"], row["index"], said["xid"], said["op"], before, after))
    return found


# ── recorded from a real server ───────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Segment:
    """As the writer of a journal cuts them: all relations in force, and what was sent under them."""

    prologue: bytes
    messages: list[Message] = field(default_factory=list)

    @property
    def batch(self) -> pa.RecordBatch:
        return messages_of(self.messages)


def make_slot(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])


def record(connection: psycopg.Connection[Any], slot: str, publication: str) -> list[Segment]:
    """All that a slot has to say, in segments."""
    for setting in SETTINGS:
        connection.execute(f"SET {setting}".encode())
    found = connection.execute(
        "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1', "
        "'publication_names', %s)",
        [slot, publication],
    ).fetchall()
    return list(_segments(bytes(data) for (data,) in found))


def _segments(frames: Iterable[bytes]) -> Iterator[Segment]:
    relations: dict[int, dict[str, Any]] = {}
    current: Segment | None = None
    lsn = micros = xid = index = 0
    for frame in frames:
        kind = frame[:1]
        if kind == b"B":
            lsn, time, xid = struct.unpack_from(">QqI", frame, 1)
            micros, index = time + MICROS_OF_2000, 0
        elif kind == b"R":
            said = _relation(frame)
            if relations.get(said["oid"]) != said:
                relations[said["oid"]] = said
                if current:
                    yield current
                current = None
        elif kind in (b"I", b"U", b"D", b"T"):
            current = current or Segment(prologue_of(relations.values()))
            oids = _oids(frame)
            current.messages += [Message(lsn, index + n, xid, oid, frame, micros) for n, oid in enumerate(oids)]
            index += len(oids)
    if current:
        yield current


def _oids(frame: bytes) -> Sequence[int]:
    if frame[:1] != b"T":
        return struct.unpack_from(">I", frame, 1)
    (count,) = struct.unpack_from(">I", frame, 1)
    return struct.unpack_from(f">{count}I", frame, 6)


def _relation(frame: bytes) -> dict[str, Any]:
    (oid,) = struct.unpack_from(">I", frame, 1)
    schema, at = _text(frame, 5)
    name, at = _text(frame, at)
    identity, count = struct.unpack_from(">cH", frame, at)
    at += 3
    columns = []
    for _ in range(count):
        key = bool(frame[at])
        column, at = _text(frame, at + 1)
        kind, mod = struct.unpack_from(">Ii", frame, at)
        at += 8
        columns.append({"name": column, "type": kind, "mod": mod, "key": key})
    return {"oid": oid, "schema": schema, "name": name, "identity": identity.decode(), "columns": columns}


def _text(frame: bytes, at: int) -> tuple[str, int]:
    end = frame.index(b"\0", at)
    return frame[at:end].decode(), end + 1
