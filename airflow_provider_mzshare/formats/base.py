"""What a format is, for the rest of the program and for those who write one; and what formats share.

A format is asked twice. Statements ask what it takes: columns, types. The pass asks it to read records: ``reader`` once
for all tables of a pass that have this format, the reader once for each batch, and the reading once for each column
that any of the tables has. So a record is parsed once, and a pair of field and type is converted once, whatever the
number of tables; a format needs to do nothing for it.

What is wrong in a record is told by row, never raised: an exception is a failure of all tables of the format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import pyarrow as pa

Errors = dict[int, str]
"""What is wrong, by the row's number in the batch. Texts name it and never quote the record."""


Field = str | int
"""What tells a field of a record from the others: its name, or its number where it has none."""


class Column(NamedTuple):
    """One value for each record, of the column's Arrow type; NULL, and an error, where there is none to be had."""

    values: pa.Array
    errors: Errors


class TableColumns(NamedTuple):
    """What a table asks of its format. No columns: the record as a whole."""

    columns: Sequence[tuple[str, str]]
    text_columns: Sequence[str] = ()
    """Those that hold whatever the field has, as text."""


class Batch:
    """The records of a batch, for all formats that read it; what several of them need is made once."""

    def __init__(self, batch: pa.RecordBatch, rows: pa.StructArray | None = None) -> None:
        """:param rows: of an upstream that has columns of its own; then keys and values are NULL."""
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
        """The values as text; NULL, and an error, where they are not UTF-8."""
        return utf8(self.values)


class Reading(ABC):
    """The records of one batch, read. A field is asked for once, and so is the record as a whole."""

    def record_errors(self, table: TableColumns) -> Errors:
        """What is wrong with a record as a whole, for a table with columns; that comes before what is wrong in a field.

        A format that does not take columns has none to tell of, here and in ``field``.
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
    """Whether a table may list columns. Without, it has the one column ``data``."""
    own_columns: ClassVar[bool] = False
    """Columns are the upstream's own: they are not listed, but may be excluded or taken as text."""
    plain_type: ClassVar[str] = "text"
    """The type of the one column ``data``."""
    key_type: ClassVar[Literal["text", "bytea"]] = "text"
    """The type of a key that is included: UTF-8, or as sent."""

    def refuses(self, type_name: str) -> str | None:
        """Why no column may have this type: ``JSON has no bytea; take text``. None: it may."""
        return None

    def fields(self, columns: Sequence[tuple[str, str]]) -> Sequence[Field]:
        """Which field of a record each column of a table takes."""
        return [name for name, _ in columns]

    @property
    def modules(self) -> Sequence[str]:
        """What travels to executors: all that reading needs beside this package, pyarrow and the standard library."""
        return (type(self).__module__,)

    @abstractmethod
    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        """How records are read for these tables; what none of them needs may be left out."""


def utf8(column: pa.Array) -> Column:
    """Binary to text; NULL stays NULL, and so becomes what is not UTF-8."""
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
