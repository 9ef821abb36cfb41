"""What a format is, for the rest of the program and for authors of formats; and what formats share.

A format is asked twice. Statements ask what it takes: columns, types. The pass asks it to read records: ``reader`` once
for all tables of a pass that have this format, the reader once for each batch, and the reading once for each column
that any of the tables has. So a record is parsed once, and a pair of field and type is converted once, for any
number of tables, without any effort of the format.

Errors of records are returned by row and never raised: an exception is a failure of all tables of the format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import pyarrow as pa

Errors = dict[int, str]
"""Errors by the row's number in the batch. Their texts never quote the record."""


Field = str | int
"""Identifies a field of a record: its name, or its number if it has no name."""


class Column(NamedTuple):
    """One value for each record, of the column's Arrow type; NULL and an error for a record without a good value."""

    values: pa.Array
    errors: Errors


class Changes(NamedTuple):
    """Records that say how rows have changed, taken apart; one of each for each record.

    ``keys``, ``before`` and ``after`` are what a reading of the format takes, as bytes; NULL where there is none. Where
    the upstream has columns of its own they are structs of these; in a NULL struct all columns are NULL.
    """

    ops: Sequence[str | None]
    """What has happened, as the record names it; None: it does not say."""
    keys: pa.Array
    before: pa.Array
    after: pa.Array
    empty: Sequence[bool]
    """Whether the record has no value."""
    errors: Errors
    unavailable: Mapping[int, frozenset[Field]]
    """By row, fields of ``after`` whose value was not sent because it has not changed."""


class TableColumns(NamedTuple):
    """What a table asks of its format. No columns: the record as a whole."""

    columns: Sequence[tuple[str, str]]
    text_columns: Sequence[str] = ()
    """Columns that hold the field's value as text, whatever it is."""


class Batch:
    """The records of a batch, for all formats that read it; what several of them need is made once."""

    def __init__(self, batch: pa.RecordBatch, rows: pa.StructArray | None = None) -> None:
        """:param rows: for an upstream that has columns of its own; then keys and values are NULL."""
        self.keys: pa.Array = batch.column("key")
        self.values: pa.Array = batch.column("value")
        self.rows = rows

    def take(self, rows: Sequence[int]) -> Batch:
        """Some of the records."""
        chosen = pa.array(rows, pa.int64())
        some = [column.take(chosen) for column in (self.keys, self.values)]
        return Batch(pa.RecordBatch.from_arrays(some, names=["key", "value"]), self.rows and self.rows.take(chosen))

    @cached_property
    def texts(self) -> Column:
        """The values as text; NULL and an error for values that are not UTF-8."""
        return utf8(self.values)


class Reading(ABC):
    """The records of one batch, read. Each field is asked for once, and so is the whole record."""

    def record_errors(self, table: TableColumns) -> Errors:
        """Errors of whole records, for a table with columns. They come before errors of a field.

        A format without columns has no such errors, neither here nor in ``field``.
        """
        return {}

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        """One field as a column of this type, which is ``text`` if the field is to be told ``as_text``."""
        raise NotImplementedError

    @abstractmethod
    def plain(self) -> Column:
        """For tables without columns: the record as a whole, as a column of the format's ``plain_type``."""


ReadBatch = Callable[[Batch], Reading]


class Format(ABC):
    """One way to decode records. Its name is the word of SQL, ``FORMAT <NAME>``, and stands in specs."""

    name: ClassVar[str]
    """Lower-case letters, digits and ``_``; the name it is registered by."""
    takes_columns: ClassVar[bool] = False
    """Whether a table may list columns. Otherwise it has the one column ``data``."""
    own_columns: ClassVar[bool] = False
    """The columns are the upstream's own: a table cannot list them, but exclude them or take them as text."""
    takes_changes: ClassVar[bool] = False
    """Whether it can take records apart that say how rows have changed: ``changes``."""
    plain_type: ClassVar[str] = "text"
    """The type of the one column ``data``."""
    key_type: ClassVar[Literal["text", "bytea"]] = "text"
    """The type of the key column: UTF-8 text, or bytes as sent."""

    def refuses(self, type_name: str) -> str | None:
        """Why no column may have this type: ``JSON has no bytea; take text``. None: it may."""
        return None

    def fields(self, columns: Sequence[tuple[str, str]]) -> Sequence[Field]:
        """Which field of a record each column of a table takes."""
        return [name for name, _ in columns]

    def changes(self, records: Batch) -> Changes:
        """Records that say how rows have changed, taken apart; asked only where the format ``takes_changes``."""
        raise NotImplementedError

    @property
    def modules(self) -> Sequence[str]:
        """Modules that travel to executors: what reading needs besides this package, pyarrow and standard library."""
        return (type(self).__module__,)

    @abstractmethod
    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        """How records are read for these tables. What no table needs may be left out."""


def utf8(column: pa.Array) -> Column:
    """Binary to text. NULL stays NULL; a value that is not UTF-8 becomes NULL, with an error."""
    try:
        return Column(column.cast(pa.string()), {})
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    errors: Errors = {}
    for row, raw in enumerate(column.to_pylist()):
        try:
            texts.append(None if raw is None else raw.decode())
        except UnicodeDecodeError as bad:
            texts.append(None)
            errors[row] = f"invalid UTF-8 at byte {bad.start}"
    return Column(pa.array(texts, pa.string()), errors)
