"""What records mean for a table whose rows change: which of them are events of a key, and which are error rows.

Decided by each record alone. What the events of a key make of its row is decided where its row is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.envelopes.base import RECORD
from airflow_provider_mzshare.formats.base import Errors
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan, errors_schema
from airflow_provider_mzshare.storage.fanout.rows import SharedColumn


@dataclass(frozen=True)
class Events:
    """:param columns: of all events, as they stand in the table.
    :param marks: of all events, whether they take their key's row away, and what else the envelope's events say.
    :param errors: the records that are no events, and why.
    :param passed: records that are neither events nor errors.
    :param records: of each event, the number of its record; None where each record is one event.
    """

    columns: Sequence[SharedColumn]
    marks: Sequence[SharedColumn]
    errors: Errors
    passed: Collection[int] = ()
    records: npt.NDArray[np.intp] | None = None


def events_of(
    member: MemberPlan,
    values: Sequence[SharedColumn],
    others: Sequence[SharedColumn],
    record_errors: Errors,
    raw: pa.Array | None,
    without_key: Collection[int],
) -> Events:
    """:param others: the columns that are not the value's: the key's, and other parts of the record.
    :param record_errors: of whole values.
    :param raw: the values as they came; None where the upstream has columns of its own, and takes no row away.
    :param without_key: records that have no key at all.
    """
    names = [name for name, _ in (*member.value_columns(), *member.include_columns())]
    named = dict(zip(names, (*values, *others), strict=False))
    taken = member.keyed_envelope.deletes(raw) if raw is not None else pa.array(np.zeros(len(values[0].values), bool))
    deletes = np.asarray(taken)
    in_key = [named[name] for name in member.keys]
    bad_values = {row: text for row, text in first_errors(record_errors, values) if not deletes[row]}
    errors = key_errors({name: named[name] for name in member.keys}, without_key)
    inline: Errors = {}
    if member.inline_errors:
        inline = {row: text for row, text in bad_values.items() if row not in errors}
    else:
        errors = {**bad_values, **errors}
    for row, text in first_errors({}, [column for column in others if column not in in_key]):
        if not deletes[row]:
            errors.setdefault(row, text)
    shown = values if not inline else [_without(column, inline) for column in values]
    said = [SharedColumn(_texts(inline, len(deletes)))] if member.inline_errors else []
    return Events([*shown, *others, *said], [SharedColumn(taken)], errors)


def first_errors(whole: Errors, columns: Sequence[SharedColumn]) -> Iterator[tuple[int, str]]:
    """The first error of each record: its own, then that of its first bad column."""
    found = dict(whole)
    for column in columns:
        for row, text in column.errors.items():
            found.setdefault(row, text)
    return iter(found.items())


def key_errors(key: Mapping[str, SharedColumn], without_key: Collection[int]) -> Errors:
    """A row without a key could not be found again: NULL equals nothing."""
    found: Errors = dict(first_errors(dict.fromkeys(without_key, "key: NULL"), list(key.values())))
    for name, column in key.items():
        for row in nulls(column.values):
            found.setdefault(int(row), f"key: {name} is NULL")
    return found


def nulls(values: pa.Array) -> npt.NDArray[np.intp]:
    return np.flatnonzero(values.is_null()) if values.null_count else np.array([], np.intp)


def _without(column: SharedColumn, rows: Errors) -> SharedColumn:
    """A value that cannot be decoded has no columns, not even those that could be."""
    mask = np.zeros(len(column.values), bool)
    mask[list(rows)] = True
    return SharedColumn(pc.if_else(pa.array(mask), pa.scalar(None, column.values.type), column.values))


def _texts(rows: Errors, count: int) -> pa.Array:
    texts: list[str | None] = [None] * count
    for row, text in rows.items():
        texts[row] = text
    return pa.array(texts, pa.string())


def as_errors(refused: pa.Table, texts: Sequence[str], place: Place) -> pa.RecordBatch | None:
    """Error rows of events that keep values of rows which are not there; None if there are none."""
    if not refused.num_rows:
        return None
    schema = errors_schema(place)
    columns = [refused.column(name) for name in RECORD.values()]
    system = [refused.column(name) for name in schema.names[len(columns) + 1 :]]
    table = pa.Table.from_arrays([*columns, pa.array(texts, pa.string()), *system], schema=schema)
    return table.combine_chunks().to_batches()[0]
