"""What the fan-out of a tick has to do, as plain values that travel to executors as JSON. Reads and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cache, cached_property
from itertools import accumulate, pairwise

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import PARTITIONED, Lane, Place
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.core.registry import load
from airflow_provider_mzshare.core.schema import (
    ERROR_COLUMNS,
    HASH_VERSION,
    INCLUDE_TYPES,
    PLAIN_COLUMN,
    Columns,
    system_columns,
    system_names,
)
from airflow_provider_mzshare.envelopes.base import (
    CLEARS,
    DELETES,
    KEPT,
    RECORD,
    ChangeEnvelope,
    KeyedEnvelope,
    as_change_envelope,
)
from airflow_provider_mzshare.formats.base import Field, Format, TableColumns

VERSION = 9

EVERY_RECORD = "airflow_provider_mzshare.envelopes.append:APPEND"
EVENTS = "_mz_events"
_CHANGES = (
    (CLEARS, "boolean"),
    (KEPT, "text"),
    *((RECORD[name], "timestamptz" if name == "timestamp" else "bytea") for name in RECORD),
)
"""Columns of the events of an envelope that has rows inside of values."""


@dataclass(frozen=True)
class MemberPlan:
    """One table of a tick: how its records decode, and the folders of its two collections (a path or a URI).

    ``format`` is the ``module:attribute`` of a format: executors have no entry points. ``columns`` are the records'
    fields and their types; empty means the one column ``data``. ``include`` are pairs of
    what (``key``, ``timestamp`` or a column of the place) and the column's name. ``data_after`` and
    ``errors_after`` are ticks up to which a collection is complete: their rows are neither written nor counted.
    Of a batch, a member takes the records of its ``partitions``; empty means all. ``text_columns`` hold whatever the
    field has as text, where the upstream's own columns are the fields. ``envelope`` is the ``module:attribute`` of what
    the records mean for the table's rows, and ``keys`` are the columns that make a row's key; empty where every record
    is a row. ``keys_in_value``: these are columns of the value, not of the record's key. ``key_format`` decodes the
    records' keys, into ``key_columns`` or whole; empty means as text, or as bytes where the format says so.
    ``inline_errors`` is the column that says why a value cannot be decoded; empty where such
    records are error rows. ``hash_version`` is the one that its collections were made with. ``place`` is that of the
    source's records. ``reference`` names the rows that it takes, where a source has several references; empty takes
    every record. ``upstream`` are columns that it takes, and their types as the upstream tells them: rows of a table
    that has got others fail it. ``visible`` says what its snapshot held already: the place where nothing more is left
    out, and the snapshot; None: every row applies.
    """

    table_id: str
    format: str
    columns: Columns
    include: tuple[tuple[str, str], ...]
    data_path: str
    errors_path: str
    stop_on_error: bool = False
    data_after: int = 0
    errors_after: int = 0
    partitions: tuple[Lane, ...] = ()
    text_columns: tuple[str, ...] = ()
    envelope: str = EVERY_RECORD
    keys: tuple[str, ...] = ()
    keys_in_value: bool = False
    key_format: str = ""
    key_columns: Columns = ()
    inline_errors: str = ""
    hash_version: int = HASH_VERSION
    place: Place = PARTITIONED
    reference: str = ""
    upstream: tuple[tuple[str, str], ...] = ()
    visible: tuple[int, str] | None = None

    @cached_property
    def decoder(self) -> Format:
        found: Format = load(self.format)
        return found

    @cached_property
    def fields(self) -> Sequence[Field]:
        """Which field of a record each of the columns takes."""
        return self.decoder.fields(self.columns)

    @property
    def asked(self) -> TableColumns:
        """What the table asks of its format."""
        return TableColumns(self.columns, self.text_columns)

    @cached_property
    def key_decoder(self) -> Format | None:
        """None where the key is not decoded by a format of its own."""
        found: Format | None = load(self.key_format) if self.key_format else None
        return found

    @property
    def asked_of_key(self) -> TableColumns:
        """What the table asks of its key's format."""
        return TableColumns(self.key_columns)

    @cached_property
    def keyed_envelope(self) -> KeyedEnvelope:
        """Of a member that has ``keys``."""
        found: KeyedEnvelope = load(self.envelope)
        return found

    @cached_property
    def change_envelope(self) -> ChangeEnvelope | None:
        """Of a member whose values have the row inside of them."""
        return as_change_envelope(self.keyed_envelope) if self.keys else None

    @property
    def key_in_value(self) -> TableColumns:
        """What the table asks of a row for its key alone."""
        return TableColumns(tuple(column for column in self.columns if column[0] in self.keys))

    def value_columns(self) -> Columns:
        return self.columns or ((PLAIN_COLUMN, self.decoder.plain_type),)

    def include_columns(self) -> Columns:
        """What is a column besides the value's own: those of the key, other parts of the record, an inline error."""
        key_type = self.key_decoder.plain_type if self.key_decoder else self.decoder.key_type
        included = tuple((name, INCLUDE_TYPES.get(what) or key_type) for what, name in self.include)
        return (*self.key_columns, *included, *(((self.inline_errors, "text"),) if self.inline_errors else ()))

    @cached_property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.value_columns() + self.include_columns() + system_columns(self.place.stored))

    @cached_property
    def events_schema(self) -> pa.Schema:
        """What the pass writes for a member that has ``keys``: the columns of its rows, and whether they go away."""
        schema = self.schema.append(pa.field(DELETES, pa.bool_()))
        if self.change_envelope is None:
            return schema
        return pa.schema([*schema, *arrow_schema(_CHANGES)])

    @property
    def folders(self) -> Mapping[str, str]:
        """Where the pass writes its files, by role. Events of keys take the place of rows."""
        return {"data": self.events_path if self.keys else self.data_path, "errors": self.errors_path}

    @property
    def events_path(self) -> str:
        """The folder of these files, which no commit names. Delta's readers leave out what begins with ``_``."""
        return f"{self.data_path.rstrip('/')}/{EVENTS}"


@dataclass(frozen=True)
class FanoutPlan:
    """One pass over the records of a tick, or of several that follow each other; all members are of one source.

    ``tick`` is the first one's number and goes into the names of files, as does ``attempt``, which tells the files of
    this pass from those of any other. ``ends`` says, per lane, where each tick but the last one ends; it is empty
    for one tick. A row's ``_mz_tick`` is the tick whose range holds its place. ``counts`` is a folder of the machine
    that all tasks run on, where each says how much it has read; empty on a cluster.
    """

    tick: int
    members: tuple[MemberPlan, ...]
    ends: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    attempt: str = "0"
    counts: str = ""

    @property
    def place(self) -> Place:
        return self.members[0].place if self.members else PARTITIONED

    @property
    def file_prefix(self) -> str:
        return f"part-{self.tick}-{self.attempt}-"

    def to_json(self) -> str:
        """Ends are written as differences, which stay short for large offsets: a group may have thousands of ticks."""
        fields = {
            "version": VERSION,
            "tick": self.tick,
            "attempt": self.attempt,
            "counts": self.counts,
            "place": self.place.to_plain(),
            "members": [_plain(member) for member in self.members],
            "ends": {lane: _steps(numbers) for lane, numbers in self.ends.items()},
        }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> FanoutPlan:
        fields = json.loads(text)
        if fields.pop("version") != VERSION:
            raise ValueError("another version of mzshare made the plan of the fan-out")
        ends = {lane: tuple(accumulate(steps)) for lane, steps in fields["ends"].items()}
        place = Place.from_plain(fields["place"])
        members = tuple(_member(member, place) for member in fields["members"])
        return cls(fields["tick"], members, ends, fields["attempt"], fields["counts"])


def _steps(numbers: Iterable[int]) -> list[int]:
    return [after - before for before, after in pairwise((0, *numbers))]


def _plain(member: MemberPlan) -> dict[str, object]:
    """The fields of a member without the place, which is the same for all members."""
    return {each.name: getattr(member, each.name) for each in dataclass_fields(member) if each.name != "place"}


_PAIRS = ("columns", "include", "key_columns", "upstream")
_TUPLES = ("partitions", "text_columns", "keys")


def _member(fields: dict[str, object], place: Place) -> MemberPlan:
    pairs = {name: tuple(tuple(pair) for pair in fields[name]) for name in _PAIRS}  # type: ignore[attr-defined]
    plain = {name: tuple(fields[name]) for name in _TUPLES}  # type: ignore[var-annotated,arg-type]
    visible = fields["visible"] and tuple(fields["visible"])  # type: ignore[arg-type]
    return MemberPlan(**{**fields, **pairs, **plain, "visible": visible}, place=place)  # type: ignore[arg-type]


def bounded_columns(schema: pa.Schema) -> list[str]:
    """Columns whose least and greatest value the log has, by file. Delta's statistics are JSON: numbers above 64 bits
    would be rounded there, and a reader would skip files that hold the value it looks for.
    """
    return [name for name in system_names(schema.names) if pa.types.is_integer(schema.field(name).type)]


def data_schema(member: MemberPlan) -> pa.Schema:
    """Value columns, include columns, system columns, in this order."""
    return member.schema


@cache
def errors_schema(place: Place = PARTITIONED) -> pa.Schema:
    return arrow_schema(ERROR_COLUMNS + system_columns(place.stored))
