"""What a journal holds of Postgres, as rows: the frames of pgoutput, protocol 1 with values as text, many at once.

All frames of a relation are walked column by column: no step is taken for a single row. Values stay the text that
Postgres wrote; what they mean for a type is the format's. Travels to Spark's executors; reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors.postgres.lsn import show_lsn
from airflow_provider_mzshare.connectors.postgres.place import PLACE
from airflow_provider_mzshare.connectors.postgres.relations import Relation, relations_of
from airflow_provider_mzshare.connectors.records import of_reference, row_batch
from airflow_provider_mzshare.errors import TerminalError

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

KEY = np.dtype([("xid", ">u4"), ("oid", ">u4"), ("index", ">u8")])
"""The key of a message: ``>IIQ``."""
_INSERT, _UPDATE, _DELETE, _TRUNCATE = b"IUDT"
_NEW, _OLD_KEY, _OLD_ROW = b"NKO"
_NULL, _UNSENT, _TEXT = b"nut"
_OPS = pa.array(["c", "u", "d", "t"])
_NUMBERS_OF_OPS = np.zeros(256, np.int8)
_NUMBERS_OF_OPS[[_INSERT, _UPDATE, _DELETE, _TRUNCATE]] = range(4)
_UNSENT_TYPE = pa.list_(pa.int16())


class MalformedChange(TerminalError):
    """A message that is no change of its relation as the segment says it. No row is made of it, nor of what follows."""

    hint = "a newer version of mzshare; this one cannot read what the server has sent"

    def __init__(self, lsn: int, index: int, why: str) -> None:
        self.lsn, self.index, self.why = lsn, index, why
        super().__init__(f"the change at lsn {show_lsn(lsn)}, index {index} cannot be read: {why}")

    def __reduce__(self) -> tuple[type[MalformedChange], tuple[int, int, str]]:
        return type(self), (self.lsn, self.index, self.why)


def rows(messages: pa.RecordBatch, prologue: bytes) -> Iterator[pa.RecordBatch]:
    """A batch for each relation, in the order of the log; relations come one after another. Raises MalformedChange.

    :param messages: of one segment, as journals have them. :param prologue: of that segment.
    """
    if not messages.num_rows:
        return
    keys = _keys(messages)
    frames = _Frames(messages, keys)
    relations = relations_of(prologue)
    oids = keys["oid"].astype(np.uint32)
    order = np.argsort(oids, kind="stable")
    starts = np.flatnonzero(np.diff(oids[order], prepend=-1))
    for numbers in np.split(order, starts[1:]):
        relation = relations.get(int(oids[numbers[0]]))
        if relation is None:
            raise frames.malformed(numbers[0], "the segment does not say its relation")
        yield _rows_of(frames, numbers, relation)


def snapshot_rows(
    relation: int, index: pa.Array, columns: Mapping[str, pa.Array], marks: Mapping[str, object] | None = None
) -> pa.RecordBatch:
    """Rows that a table held before the log: at lsn 0, of no transaction.

    :param index: where each lies in its table. :param columns: the values as text. :param marks: as of a relation.
    """
    count = len(index)
    row = {
        "op": pa.repeat("r", count),
        "xid": pa.nulls(count, pa.int64()),
        "before": pa.nulls(count, pa.struct([(name, values.type) for name, values in columns.items()])),
        "after": pa.StructArray.from_arrays(list(columns.values()), names=list(columns)),
        "unsent": pa.nulls(count, _UNSENT_TYPE),
    }
    lsns, times = pa.repeat(pa.scalar(0, pa.int64()), count), pa.nulls(count, pa.timestamp("us", "UTC"))
    return of_reference(row_batch(PLACE, [lsns, index], times, row), str(relation), marks)


def _keys(messages: pa.RecordBatch) -> npt.NDArray[np.void]:
    column, lsns = messages.column("key"), messages.column("position")
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    wrong = np.flatnonzero(np.diff(ends) != KEY.itemsize)
    if column.null_count or len(wrong):
        row = int(wrong[0]) if len(wrong) else int(np.flatnonzero(column.is_null())[0])
        raise MalformedChange(lsns[row].as_py() or 0, -1, "its key is not one of a change")
    return np.frombuffer(data, KEY, len(column), int(ends[0]))


class _Frames:
    """The bytes of all messages, and where each begins and ends."""

    def __init__(self, messages: pa.RecordBatch, keys: npt.NDArray[np.void]) -> None:
        values = messages.column("value")
        _, offsets, data = values.buffers()
        ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        self.starts, self.ends = ends[:-1], ends[1:]
        self.buffer = data if data is not None else pa.py_buffer(b"")
        self.bytes: Bytes = np.frombuffer(self.buffer, np.uint8)
        self._last = len(self.bytes) - 1
        self.keys, self.messages = keys, messages
        short = np.flatnonzero(self.ends - self.starts < 6)
        if len(short):
            raise self.malformed(short[0], "it is too short")
        self._wide = np.ndarray((len(self.bytes) - 3,), ">u4", self.buffer, strides=(1,))

    def malformed(self, number: np.intp | int, why: str) -> MalformedChange:
        lsn = self.messages.column("position")[int(number)].as_py()
        return MalformedChange(lsn or 0, int(self.keys["index"][number]), why)

    def one(self, at: Numbers) -> Bytes:
        """The byte at each place. What is past the end is found by the place itself."""
        found: Bytes = self.bytes[np.minimum(at, self._last)]
        return found

    def four(self, at: Numbers) -> Numbers:
        found: Numbers = self._wide[np.minimum(at, self._last - 3)].astype(np.int64)
        return found

    def two(self, at: Numbers) -> Numbers:
        return self.one(at).astype(np.int64) << 8 | self.one(at + 1)


@dataclass
class _Values:
    """One column of the tuples of some messages: what kind of value each is, and where its text stands."""

    kinds: Bytes
    starts: Numbers
    ends: Numbers


@dataclass(frozen=True)
class _Walk:
    """The messages of one relation."""

    frames: _Frames
    numbers: npt.NDArray[np.intp]
    relation: Relation

    def check(self, fine: Mask, why: str) -> None:
        if not fine.all():
            raise self.frames.malformed(self.numbers[int(np.argmin(fine))], why)

    def tuples(self, at: Numbers, there: Mask) -> tuple[Sequence[_Values] | None, Numbers]:
        """What the rows hold that begin at these places, where there is one; and the places behind them."""
        if not there.any():
            return None, at
        if there.all():
            return self._whole_tuples(at)
        chosen = np.flatnonzero(there)
        found, behind = _Walk(self.frames, self.numbers[chosen], self.relation)._whole_tuples(at[chosen])
        after = at.copy()
        after[chosen] = behind
        return [_spread(values, at, chosen) for values in found], after

    def _whole_tuples(self, at: Numbers) -> tuple[Sequence[_Values], Numbers]:
        ends, found = self.frames.ends[self.numbers], []
        count = len(self.relation.columns)
        self.check((at + 3 <= ends) & (self.frames.two(at + 1) == count), "it has another number of columns")
        here = at + 3
        for column in self.relation.columns:
            values, here = self._column(here, ends, column.name)
            found.append(values)
        return found, here

    def _column(self, at: Numbers, ends: Numbers, name: str) -> tuple[_Values, Numbers]:
        kinds = self.frames.one(at)
        text = kinds == _TEXT
        if text.all():
            starts = at + 5
            after = starts + self.frames.four(at + 1)
        else:
            self.check(text | (kinds == _NULL) | (kinds == _UNSENT), f'column "{name}" is neither text nor NULL')
            starts = at + np.where(text, 5, 1)
            after = starts + np.where(text, self.frames.four(at + 1), 0)
        self.check(after <= ends, f'column "{name}" ends behind the message')
        return _Values(kinds, starts, after), after


def _spread(values: _Values, at: Numbers, chosen: npt.NDArray[np.intp]) -> _Values:
    """For all messages; NULL where there is no such row."""
    kinds, starts, ends = np.full(len(at), _NULL, np.uint8), at.copy(), at.copy()
    kinds[chosen], starts[chosen], ends[chosen] = values.kinds, values.starts, values.ends
    return _Values(kinds, starts, ends)


def _rows_of(frames: _Frames, numbers: npt.NDArray[np.intp], relation: Relation) -> pa.RecordBatch:
    walk = _Walk(frames, numbers, relation)
    starts = frames.starts[numbers]
    ops, marks = frames.bytes[starts], frames.bytes[starts + 5]
    inserts, updates, deletes, truncates = (ops == op for op in (_INSERT, _UPDATE, _DELETE, _TRUNCATE))
    walk.check(inserts | updates | deletes | truncates, "it is no change of a row")
    walk.check(truncates | (frames.four(starts + 1) == relation.oid), "it is of another relation than its key says")
    whole_old = marks == _OLD_ROW
    has_old = (updates | deletes) & (whole_old | (marks == _OLD_KEY))
    walk.check(has_old | ~deletes, "a delete does not say which row")
    old, at = walk.tuples(starts + 5, has_old)
    has_new = inserts | updates
    walk.check(~has_new | (frames.one(at) == _NEW), "the row after the change is missing")
    new, at = walk.tuples(at, has_new)
    walk.check((at == frames.ends[numbers]) | truncates, "bytes follow the row")
    if old and new:
        _take_unsent(new, old, has_old, has_old & whole_old, relation)
    row = {
        "op": _OPS.take(pa.array(_NUMBERS_OF_OPS[ops])),
        "xid": pa.array(frames.keys["xid"][numbers].astype(np.int64)),
        "before": _struct(frames, old, has_old, relation),
        "after": _struct(frames, new, has_new, relation),
        "unsent": _unsent(new, len(numbers)),
    }
    some, index = pa.array(numbers), pa.array(frames.keys["index"][numbers].astype(np.int64))
    lsns, times = (frames.messages.column(name).take(some) for name in ("position", "timestamp"))
    return of_reference(row_batch(PLACE, [lsns, index], times, row), str(relation.oid), relation.marks)


def _take_unsent(
    new: Sequence[_Values], old: Sequence[_Values], has_old: Mask, whole: Mask, relation: Relation
) -> None:
    """A value that was not sent because it has not changed is there all the same, if the old row was sent."""
    for column, values, before in zip(relation.columns, new, old, strict=True):
        known = has_old if column.key else whole
        taken = (values.kinds == _UNSENT) & known & (before.kinds != _UNSENT)
        if taken.any():
            values.kinds = np.where(taken, before.kinds, values.kinds)
            values.starts = np.where(taken, before.starts, values.starts)
            values.ends = np.where(taken, before.ends, values.ends)


def _struct(frames: _Frames, values: Sequence[_Values] | None, there: Mask, relation: Relation) -> pa.StructArray:
    names, count = [column.name for column in relation.columns], len(there)
    kind = pa.struct([(name, pa.binary()) for name in names])
    if values is None:
        return pa.nulls(count, kind)
    columns = [_gathered(frames.buffer, each) for each in values]
    return pa.Array.from_buffers(kind, count, [_bits(there)], children=columns)


def _gathered(data: pa.Buffer, values: _Values) -> pa.Array:
    """Values and what lies between them are the elements of one array over all frames; every second one is a value."""
    count, there = len(values.kinds), values.kinds == _TEXT
    if not there.any():
        return pa.nulls(count, pa.binary())
    ends = np.empty(2 * count, np.int32)
    ends[0::2], ends[1::2] = values.starts, values.ends
    everything = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(ends), data])
    found = everything.take(pa.array(np.arange(0, 2 * count, 2)))
    if there.all():
        return found
    return pa.Array.from_buffers(pa.binary(), count, [_bits(there), *found.buffers()[1:]])


def _unsent(values: Sequence[_Values] | None, count: int) -> pa.Array:
    """The numbers of the columns whose values were not sent; NULL where there are none."""
    masks = [each.kinds == _UNSENT for each in values or ()]
    if not any(mask.any() for mask in masks):
        return pa.nulls(count, _UNSENT_TYPE)
    rows, columns = np.nonzero(np.column_stack(masks))
    counts = np.bincount(rows, minlength=count)
    ends = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    of = pa.array(columns, pa.int16())
    return pa.Array.from_buffers(_UNSENT_TYPE, count, [_bits(counts > 0), ends.buffers()[1]], children=[of])


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
