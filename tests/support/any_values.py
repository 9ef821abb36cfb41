"""A format of the tests' own that gives columns of any type with values that records can hardly have.

JSON has no NaN and no infinity, and its texts are seldom empty, large or all the same. What a column holds follows from
the records and from the field, so two passes over the same records give the same rows.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import numeric_parts
from airflow_provider_mzshare.formats.base import Batch, Column, Errors, Field, Format, ReadBatch, Reading, TableColumns

TARGET = f"{__name__}:ANY"
"""As plans name the format."""

_UTC = timezone.utc
_TEXTS = ("", "\0", "a\0b", " ", "é", "😀", "\u2028", '"', "x" * 300, "NULL", "NaN", "\x7f\x80", "日本語")
_JSON = ("null", "true", "1.10", '""', "[]", "{}", '{"a":1,"b":[null,1e400]}', '"\\u0000"', '{"é":"😀"}')
_BYTES = (b"", b"\0", b"\xff\xfe", b"PAR1", bytes(range(256)))
_FLOATS = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, 5e-324, 3.5e38)
_DAYS = (date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1969, 12, 31), date(2024, 2, 29), date.max)
_TIMES = (
    datetime(1, 1, 1), datetime(1582, 10, 4, 23, 59, 59, 999_999), datetime(1899, 12, 31), datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.max,
)  # fmt: skip


def _times(rng: random.Random) -> datetime:
    return rng.choice(_TIMES) if rng.random() < 0.3 else datetime(1900, 1, 1) + timedelta(seconds=rng.random() * 9e9)


def _number(rng: random.Random, bits: int) -> int:
    return rng.choice((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, rng.randrange(-999, 999), rng.getrandbits(14)))


def _exact(rng: random.Random, precision: int, scale: int) -> Decimal:
    most = 10**precision - 1
    digits = rng.choice((most, -most, 0, 1, -1, rng.randrange(-most, most + 1)))
    return Decimal(digits).scaleb(-scale, Context(prec=precision))


_ONE: dict[str, Callable[[random.Random], Any]] = {
    "boolean": lambda rng: rng.random() < 0.5,
    "smallint": lambda rng: _number(rng, 16),
    "integer": lambda rng: _number(rng, 32),
    "bigint": lambda rng: _number(rng, 64),
    "real": lambda rng: rng.choice((*_FLOATS, np.float32(rng.gauss(0, 1e9)))),
    "double": lambda rng: rng.choice((*_FLOATS, rng.gauss(0, 1e200), rng.random())),
    "text": lambda rng: rng.choice(_TEXTS) if rng.random() < 0.3 else rng.randbytes(rng.randrange(40)).hex(),
    "jsonb": lambda rng: rng.choice(_JSON) if rng.random() < 0.3 else f'{{"n":{rng.random()}}}',
    "bytea": lambda rng: rng.choice(_BYTES) if rng.random() < 0.3 else rng.randbytes(rng.randrange(60)),
    "date": lambda rng: rng.choice(_DAYS) if rng.random() < 0.3 else date.fromordinal(rng.randrange(1, 3_652_060)),
    "timestamp": _times,
    "timestamptz": lambda rng: _times(rng).replace(tzinfo=_UTC),
}


def some_values(rng: random.Random, type_name: str, count: int) -> pa.Array:
    """All alike, of a few kinds or all different; none, some, all or the first half of them NULL."""
    parts = numeric_parts(type_name)
    one = (lambda rng: _exact(rng, *parts)) if parts else _ONE[type_name]
    distinct = [one(rng) for _ in range(min(count, rng.choice((1, 3, 40, 5_000))))]
    values = pa.array(distinct, arrow_type(type_name))
    numbers = np.random.default_rng(rng.getrandbits(32))
    picked = (
        np.arange(count) % max(1, len(distinct)) if rng.random() < 0.5 else numbers.integers(0, len(distinct), count)
    )
    absent = rng.choice((
        np.zeros(count, bool), numbers.random(count) < 0.3, np.arange(count) < count // 2, np.ones(count, bool),
    ))  # fmt: skip
    return values.take(pa.array(picked, pa.int64(), mask=absent))


class AnyValues(Format):
    name = "any_values"
    takes_columns = True
    plain_type = "bytea"

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        return AnyReading


class AnyReading(Reading):
    def __init__(self, records: Batch) -> None:
        self._count = len(records.values)
        self._seed = zlib.crc32(repr(records.values.to_pylist()).encode())

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        rng = random.Random(f"{self._seed} {field} {type_name}")
        values = some_values(rng, type_name, self._count)
        share = rng.choice((0, 0, 0, 0, 0.01, 0.3))
        errors: Errors = {row: f"field {field}: bad" for row in range(self._count) if share and rng.random() < share}
        return Column(values, errors)

    def plain(self) -> Column:
        return self.field("data", "bytea", as_text=False)


ANY = AnyValues()
