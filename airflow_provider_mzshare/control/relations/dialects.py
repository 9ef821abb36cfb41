"""What SQLite and Postgres say differently, so that a relation is written once for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from airflow_provider_mzshare.control.catalog.database.base import MOST


class Dialect(ABC):
    """Each method makes an expression out of expressions; none of them takes anything that a user has written."""

    name: str

    @abstractmethod
    def time(self, milliseconds: str) -> str:
        """``2026-01-31T09:30:00.125Z``: text that sorts as the times do, and the same on both."""

    @abstractmethod
    def field(self, document: str, *path: str) -> str:
        """A text in a JSON document, or NULL."""

    @abstractmethod
    def part(self, document: str, *path: str) -> str:
        """A part of a JSON document, as JSON; NULL where there is none."""

    @abstractmethod
    def texts(self, document: str, path: str, field: str, **only: str) -> str:
        """This field of each object in a list of a JSON document, as a JSON list; NULL where there is none of them.

        :param only: of the objects that have these values.
        """

    @abstractmethod
    def document(self, text: str) -> str:
        """A column that holds JSON, as JSON."""

    @abstractmethod
    def names(self, text: str) -> str:
        """A JSON list of texts, as text[]; SQLite has no such type, and keeps it as JSON."""

    @abstractmethod
    def entries(self, position: str) -> str:
        """For FROM: the partitions of a position, as rows ``e`` of ``key`` and ``value``."""

    @abstractmethod
    def lane(self, key: str) -> str:
        """The number of a partition that has one, else NULL."""

    @abstractmethod
    def number(self, value: str) -> str:
        """An offset of ``entries``; NULL where it has no room in a bigint."""

    @abstractmethod
    def sum(self, numbers: str) -> str:
        """An aggregate: the sum of numbers from 0 on, at most the largest bigint: one source must not fail all rows."""

    @abstractmethod
    def total(self, position: str) -> str:
        """The sum of a position's offsets; a partition that is missing is at 0."""

    @abstractmethod
    def least(self, one: str, other: str) -> str: ...

    @abstractmethod
    def greatest(self, one: str, other: str) -> str: ...

    @abstractmethod
    def truth(self, condition: str) -> str: ...

    @abstractmethod
    def pair(self, **fields: str) -> str:
        """A JSON object of these expressions."""


class SQLite(Dialect):
    name = "sqlite"

    def time(self, milliseconds: str) -> str:
        seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {milliseconds} / 1000, 'unixepoch')"
        return f"({seconds} || printf('.%03dZ', {milliseconds} % 1000))"

    def field(self, document: str, *path: str) -> str:
        return f"json_extract({document}, '$.{'.'.join(path)}')"

    def part(self, document: str, *path: str) -> str:
        return self.field(document, *path)

    def texts(self, document: str, path: str, field: str, **only: str) -> str:
        where = "".join(f" AND {self.field('value', name)} = '{value}'" for name, value in only.items())
        listed = f"json_group_array({self.field('value', field)})"
        rows = f"(SELECT value FROM json_each({document}, '$.{path}') WHERE true{where} ORDER BY key)"
        return f"(SELECT CASE WHEN COUNT(*) > 0 THEN {listed} END FROM {rows})"

    def document(self, text: str) -> str:
        return text

    def names(self, text: str) -> str:
        return text

    def entries(self, position: str) -> str:
        return f"json_each({position}) AS e"

    def lane(self, key: str) -> str:
        return f"(CASE WHEN {key} GLOB '[0-9]*' AND {key} NOT GLOB '*[^0-9]*' THEN CAST({key} AS INTEGER) END)"

    def number(self, value: str) -> str:
        # A number that is too large for an integer is a float here.
        return f"(CASE WHEN typeof({value}) = 'integer' THEN {value} END)"

    def sum(self, numbers: str) -> str:
        # SUM fails on overflow: so the upper and the lower 32 bits are added separately.
        upper, lower = f"SUM({numbers} >> 32)", f"SUM({numbers} & {0xFFFFFFFF})"
        most = f"CASE WHEN {upper} + ({lower} >> 32) > {MOST >> 32} THEN {MOST} ELSE ({upper} << 32) + {lower} END"
        return f"COALESCE({most}, 0)"

    def total(self, position: str) -> str:
        return f"(SELECT {self.sum('value')} FROM json_each({position}))"

    def least(self, one: str, other: str) -> str:
        return f"MIN({one}, {other})"

    def greatest(self, one: str, other: str) -> str:
        return f"MAX({one}, {other})"

    def truth(self, condition: str) -> str:
        return f"(CASE WHEN {condition} THEN 1 ELSE 0 END)"

    def pair(self, **fields: str) -> str:
        return f"json_object({_named(fields)})"


class Postgres(Dialect):
    name = "postgresql"

    def time(self, milliseconds: str) -> str:
        # Whole microseconds, because a division would sometimes lose a millisecond.
        moment = f"(timestamp 'epoch' + {milliseconds} * interval '1 millisecond')"
        return f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""

    def field(self, document: str, *path: str) -> str:
        return f"({document}::jsonb #>> '{{{','.join(path)}}}')"

    def part(self, document: str, *path: str) -> str:
        return f"NULLIF({document}::jsonb #> '{{{','.join(path)}}}', 'null'::jsonb)"

    def texts(self, document: str, path: str, field: str, **only: str) -> str:
        where = "".join(f" AND entry.value ->> '{name}' = '{value}'" for name, value in only.items())
        listed = f"jsonb_agg(entry.value ->> '{field}' ORDER BY entry.number)"
        rows = f"jsonb_array_elements({document}::jsonb -> '{path}') WITH ORDINALITY AS entry (value, number)"
        return f"(SELECT {listed} FROM {rows} WHERE true{where})"

    def document(self, text: str) -> str:
        return f"({text})::jsonb"

    def names(self, text: str) -> str:
        listed = f"ARRAY(SELECT * FROM jsonb_array_elements_text({text}::jsonb))"
        return f"(CASE WHEN {text} IS NULL THEN NULL ELSE {listed} END)"

    def entries(self, position: str) -> str:
        return f"LATERAL jsonb_each_text({position}::jsonb) AS e (key, value)"

    def lane(self, key: str) -> str:
        return f"(CASE WHEN {key} ~ '^[0-9]{{1,9}}$' THEN {key} END)"

    def number(self, value: str) -> str:
        return f"(CASE WHEN {value}::numeric <= {MOST} THEN {value} END)"

    def sum(self, numbers: str) -> str:
        return f"LEAST(COALESCE(SUM({numbers}), 0), {MOST})::bigint"

    def total(self, position: str) -> str:
        rows = f"jsonb_each_text({position}::jsonb) AS entry (key, value)"
        return f"(SELECT {self.sum('entry.value::numeric')} FROM {rows})"

    def least(self, one: str, other: str) -> str:
        return f"LEAST({one}, {other})"

    def greatest(self, one: str, other: str) -> str:
        return f"GREATEST({one}, {other})"

    def truth(self, condition: str) -> str:
        return f"(COALESCE({condition}, false))"

    def pair(self, **fields: str) -> str:
        return f"jsonb_build_object({_named(fields)})"


def _named(fields: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}', {value}" for name, value in fields.items())
