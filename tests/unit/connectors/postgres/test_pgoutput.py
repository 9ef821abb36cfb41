"""Frames become messages: places, times and keys of each, and a prologue where what decodes them is new."""

from __future__ import annotations

import json
import struct
from typing import Any

from airflow_provider_mzshare.connectors.postgres.datasource import next_boundary
from airflow_provider_mzshare.connectors.postgres.pgoutput import CHANGES, Group


def begin(lsn: int, time: int, xid: int) -> bytes:
    return struct.pack(">cqqI", b"B", lsn, time, xid)


def commit(lsn: int, end: int) -> bytes:
    return struct.pack(">cBqqq", b"C", 0, lsn, end, 0)


def relation(oid: int, name: str, *columns: str) -> bytes:
    body = b"".join(
        struct.pack(">B", n == 0) + c.encode() + b"\0" + struct.pack(">Ii", 25, -1) for n, c in enumerate(columns)
    )
    head = struct.pack(">cI", b"R", oid) + b"public\0" + name.encode() + b"\0d"
    return head + struct.pack(">H", len(columns)) + body


def insert(oid: int, tail: bytes = b"") -> bytes:
    return struct.pack(">cI", b"I", oid) + b"N" + tail


def truncate(*oids: int) -> bytes:
    return struct.pack(">cIB", b"T", len(oids), 0) + struct.pack(f">{len(oids)}I", *oids)


def feed(group: Group, *frames: bytes) -> None:
    for frame in frames:
        if frame[0] in CHANGES:
            group.frames.append(frame)
        else:
            group.note(frame)


def taken(group: Group) -> tuple[list[tuple[int, int, int, int]], Any]:
    """Position, xid, oid and index of each message, and the relations of the prologue by name."""
    messages, prologue = group.take()
    keys = [struct.unpack(">IIQ", key) for key in messages.column("key").to_pylist()]
    rows = [(position, *key) for position, key in zip(messages.column("position").to_pylist(), keys, strict=True)]
    said = json.loads(prologue) if prologue else None
    return rows, said and {one["name"]: [c["name"] for c in one["columns"]] for one in said["relations"]}


def test_messages_have_the_place_of_their_transaction_and_their_number_in_it() -> None:
    group = Group()
    feed(group, begin(100, 5, 7), relation(1, "a", "id"), insert(1), insert(1), commit(100, 110))
    feed(group, begin(120, 6, 8), insert(1))
    assert group.boundary == 110
    assert group.is_open
    rows, relations = taken(group)
    assert rows == [(100, 7, 1, 0), (100, 7, 1, 1), (120, 8, 1, 0)]
    assert relations == {"a": ["id"]}
    assert group.boundary is None
    feed(group, insert(1), commit(120, 130))
    assert group.boundary == 130
    assert taken(group) == ([(120, 8, 1, 1)], None)


def test_times_count_from_2000_on() -> None:
    group = Group()
    feed(group, begin(1, 1_000_000, 1), relation(1, "a", "id"), insert(1), commit(1, 2))
    (at,) = group.take()[0].column("timestamp").to_pylist()
    assert at.isoformat() == "2000-01-01T00:00:01+00:00"


def test_a_new_relation_joins_what_all_of_the_group_is_decoded_with() -> None:
    group = Group()
    feed(group, begin(1, 0, 1), relation(1, "a", "id"), insert(1))
    feed(group, relation(2, "b", "id"), insert(2), relation(1, "a", "id"), insert(1), commit(1, 2))
    assert not group.is_full()
    rows, relations = taken(group)
    assert [oid for _, _, oid, _ in rows] == [1, 2, 1]
    assert relations == {"a": ["id"], "b": ["id"]}


def test_a_relation_that_has_changed_begins_the_next_group() -> None:
    group = Group()
    feed(group, begin(1, 0, 1), relation(1, "a", "id"), insert(1), relation(1, "a", "id", "more"))
    assert group.is_full()
    assert taken(group) == ([(1, 1, 1, 0)], {"a": ["id"]})
    assert not group.is_full()
    feed(group, insert(1), commit(1, 2))
    assert taken(group) == ([(1, 1, 1, 1)], {"a": ["id", "more"]})


def test_a_truncate_is_a_message_of_each_of_its_relations() -> None:
    group = Group()
    feed(group, begin(1, 0, 1), relation(1, "a", "id"), relation(2, "b", "id"), insert(1), truncate(2, 1), insert(1))
    assert taken(group)[0] == [(1, 1, 1, 0), (1, 1, 2, 1), (1, 1, 1, 2), (1, 1, 1, 3)]


def test_relations_that_are_known_from_before_are_said_once_more() -> None:
    first = Group()
    feed(first, begin(1, 0, 1), relation(1, "a", "id"), insert(1))
    group = Group(first.relations)
    assert taken(group) == ([], None)
    feed(group, begin(1, 0, 1), relation(1, "a", "id"), insert(1))
    assert taken(group)[1] == {"a": ["id"]}


def test_a_batch_ends_at_the_last_boundary_that_fits_and_never_in_a_transaction() -> None:
    marks = {100: 0, 110: 5, 120: 9, 130: 500}
    assert next_boundary(100, marks, 9) == 120
    assert next_boundary(100, marks, 8) == 110
    assert next_boundary(100, marks, 1) == 110
    assert next_boundary(120, marks, 10) == 130
    assert next_boundary(130, marks, 10) == 130
    assert next_boundary(105, marks, 10) == 105
