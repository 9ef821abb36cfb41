"""Frames of pgoutput to rows: as a plain loop reads them, whatever the frames are, and never a wrong row."""

from __future__ import annotations

import json
import pickle
from random import Random

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.postgres.decoding import MalformedChange, rows, snapshot_rows
from airflow_provider_mzshare.connectors.records import MARKS, REFERENCE
from tests.support.pgoutput import (
    UNSENT,
    Bad,
    Change,
    Message,
    Tuple,
    Value,
    changes_in,
    frame_of,
    messages_of,
    plain_change,
    prologue_of,
    relation_of,
    tuple_of,
)

T = relation_of(7, [("id", 23, True), ("a", 25, False), ("b", 25, False)])
PROLOGUE = prologue_of([T])


def decoded(*frames: bytes, oid: int = 7, prologue: bytes = PROLOGUE) -> list[Change]:
    messages = messages_of([Message(100 + n, n, 5, oid, frame) for n, frame in enumerate(frames)])
    return [change for batch in rows(messages, prologue) for change in changes_in(batch)]


def test_what_each_frame_says() -> None:
    long = b"x" * 100_000
    found = decoded(
        frame_of(7, "I", None, [b"1", "é".encode(), None]),
        frame_of(7, "U", None, [b"1", b"", UNSENT]),
        frame_of(7, "U", ("K", [b"1", None, None]), [b"2", UNSENT, long]),
        frame_of(7, "U", ("O", [b"2", b"old", None]), [b"2", UNSENT, b"n"]),
        frame_of(7, "D", ("K", [b"2", None, None])),
        frame_of(7, "D", ("O", [b"3", b"c", None])),
        frame_of(7, "T"),
    )
    assert [(each.op, each.before, each.after) for each in found] == [
        ("c", None, [b"1", "é".encode(), None]),
        ("u", None, [b"1", b"", UNSENT]),
        ("u", [b"1", None, None], [b"2", UNSENT, long]),
        ("u", [b"2", b"old", None], [b"2", b"old", b"n"]),
        ("d", [b"2", None, None], None),
        ("d", [b"3", b"c", None], None),
        ("t", None, None),
    ]
    assert [(each.lsn, each.index, each.xid) for each in found] == [(100 + n, n, 5) for n in range(7)]


def test_a_key_that_was_not_sent_anew_is_that_of_the_old_row() -> None:
    (found,) = decoded(frame_of(7, "U", ("K", [b"1", None, None]), [UNSENT, b"a", UNSENT]))
    assert found.after == [b"1", b"a", UNSENT]


def test_a_relation_without_columns_has_rows() -> None:
    none = prologue_of([relation_of(7, [])])
    assert [each.op for each in decoded(frame_of(7, "I", None, []), frame_of(7, "T"), prologue=none)] == ["c", "t"]
    assert decoded() == []


def test_batches_say_whose_rows_they_are() -> None:
    (batch,) = rows(messages_of([Message(1, 0, 5, 7, frame_of(7, "T"))]), PROLOGUE)
    said = batch.schema.metadata
    assert said[REFERENCE] == b"7"
    wanted = {"name": "public.t7", "columns": {"id": "23", "a": "25", "b": "25"}, "keys": ["id"]}
    assert json.loads(said[MARKS]) == wanted


def test_rows_of_snapshots_have_the_shape_of_changes() -> None:
    columns = {"id": pa.array(["1", "2"]), "a": pa.array([None, "x"])}
    batch = snapshot_rows(7, pa.array([65536, 65537]), columns)
    assert changes_in(batch) == [
        Change(0, 65536, None, "r", None, ["1", None]),  # type: ignore[arg-type]
        Change(0, 65537, None, "r", None, ["2", "x"]),  # type: ignore[arg-type,list-item]
    ]
    assert batch.schema.metadata[REFERENCE] == b"7"
    assert {each.name for each in batch.schema.field("row").type} == {"op", "xid", "before", "after", "unsent"}


# ── any frames ────────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn_value(draw: Random, unsent: bool) -> Value:
    kind = draw.random()
    if kind < 0.15:
        return None
    if unsent and kind < 0.3:
        return UNSENT
    return draw.randbytes(draw.choice([0, 1, 3, 12, 13, 40]))


def drawn_tuple(draw: Random, width: int, *, unsent: bool = True) -> Tuple:
    return [drawn_value(draw, unsent) for _ in range(width)]


def drawn_frame(draw: Random, oid: int, width: int) -> bytes:
    op = draw.choice("IIUUUDDT")
    old = (draw.choice("KO"), drawn_tuple(draw, width, unsent=draw.random() < 0.1))
    if op == "T":
        return frame_of(oid, op)
    if op == "D":
        return frame_of(oid, op, old)
    return frame_of(oid, op, old if op == "U" and draw.random() < 0.5 else None, drawn_tuple(draw, width))


def drawn_stream(draw: Random) -> tuple[list[Message], list[dict[str, object]]]:
    widths = {oid: draw.randint(0, 5) for oid in draw.sample([1, 7, 2**31 + 5, 2**32 - 1], 3)}
    relations = [
        relation_of(oid, [(f"c{n}", 25, draw.random() < 0.4) for n in range(width)]) for oid, width in widths.items()
    ]
    oids = [draw.choice(list(widths)) for _ in range(draw.choice([1, 5, 60]))]
    frames = [drawn_frame(draw, oid, widths[oid]) for oid in oids]
    pairs = enumerate(zip(oids, frames, strict=True))
    return [Message(10 + n // 4, n, 2**32 - 1 - n, oid, frame) for n, (oid, frame) in pairs], relations


@pytest.mark.parametrize("seed", range(60))
def test_any_frames_are_what_a_plain_loop_reads(seed: int) -> None:
    draw = Random(seed)
    messages, relations = drawn_stream(draw)
    known = {each["oid"]: each for each in relations}
    low = draw.randint(0, len(messages) - 1)
    for part, batch in ((messages, messages_of(messages)), (messages[low:], messages_of(messages).slice(low))):
        found = list(rows(batch, prologue_of(relations)))
        for each in found:
            each.validate(full=True)
        got = {batch.schema.metadata[REFERENCE]: changes_in(batch) for batch in found}
        assert len(got) == len(found)
        wanted: dict[bytes, list[Change]] = {}
        for message in part:
            wanted.setdefault(str(message.oid).encode(), []).append(plain_change(message, known[message.oid]))
        assert got == wanted


def damaged(draw: Random, frame: bytes) -> bytes:
    at = draw.randrange(len(frame))
    how = draw.randrange(4)
    if how == 0:
        return frame[:at]
    if how == 1:
        return frame + draw.randbytes(draw.randint(1, 3))
    if how == 2:
        return frame[:at] + draw.randbytes(1) + frame[at + 1 :]
    return frame[:at] + frame[at + 1 :]


@pytest.mark.parametrize("seed", range(200))
def test_a_damaged_frame_is_named_or_read_as_a_plain_loop_reads_it(seed: int) -> None:
    draw = Random(seed)
    messages, relations = drawn_stream(draw)
    known = {each["oid"]: each for each in relations}
    at = draw.randrange(len(messages))
    messages[at] = messages[at]._replace(frame=damaged(draw, messages[at].frame))
    try:
        wanted = plain_change(messages[at], known[messages[at].oid])
    except Bad:
        with pytest.raises(MalformedChange) as failed:
            list(rows(messages_of(messages), prologue_of(relations)))
        assert (failed.value.lsn, failed.value.index) == (messages[at].lsn, messages[at].index)
        return
    if wanted.op == "t" and len(messages[at].frame) < 6:
        return  # nothing but the key says what it truncates
    found = [change for batch in rows(messages_of(messages), prologue_of(relations)) for change in changes_in(batch)]
    assert wanted in found


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"", "too short"),
        (b"M" + b"\0" * 20, "no change of a row"),
        (frame_of(8, "I", None, [b"1", None, None]), "another relation"),
        (frame_of(7, "I", None, [b"1", None]), "another number of columns"),
        (frame_of(7, "I", None, [b"1", None, None, None]), "another number of columns"),
        (frame_of(7, "I", None, [b"1", None, None]) + b"x", "bytes follow"),
        (frame_of(7, "I", None, [b"1", None, b"abc"])[:-1], 'column "b" ends behind the message'),
        (frame_of(7, "I", None, [b"1", None, b"abc"])[:-7] + b"\xff\xff\xff\xffabc", "ends behind"),
        (frame_of(7, "I", None, [b"1", b"x", None]).replace(b"t\0\0\0\1x", b"b\0\0\0\1x"), "neither text nor NULL"),
        (frame_of(7, "D", ("N", [b"1", None, None])), "does not say which row"),
        (b"U\0\0\0\7K" + tuple_of([b"1", None, None]), "the row after the change is missing"),
    ],
)
def test_what_is_no_change_is_named_by_its_place(frame: bytes, why: str) -> None:
    good = frame_of(7, "I", None, [b"1", None, None])
    with pytest.raises(MalformedChange, match=f"the change at lsn 0/65, index 1 cannot be read: .*{why}") as failed:
        decoded(good, frame, good)
    again = pickle.loads(pickle.dumps(failed.value))
    assert (str(again), again.lsn, again.index) == (str(failed.value), 101, 1)


def test_a_relation_that_the_segment_does_not_say_is_none() -> None:
    with pytest.raises(MalformedChange, match="does not say its relation"):
        decoded(frame_of(9, "T"), oid=9)


def test_a_key_that_is_none_of_ours_is_refused() -> None:
    messages = messages_of([Message(1, 0, 5, 7, frame_of(7, "T"))])
    for key in (b"abc", None):
        other = messages.set_column(2, "key", pa.array([key], pa.binary()))
        with pytest.raises(MalformedChange, match="its key is not one of a change"):
            list(rows(other, PROLOGUE))
