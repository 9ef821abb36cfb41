"""The values of made-up rows, column by column, as the texts that JSON has of them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_mzshare.connectors.load_generator.draws import Ints, decimals, moments


@dataclass(frozen=True)
class Value:
    """Texts of which none has anything that JSON escapes."""

    texts: pa.Array
    quoted: bool


@dataclass(frozen=True)
class Field:
    name: str
    value: Value


@dataclass(frozen=True)
class Made:
    """Rows, and the keys of their records as text; None where records have none."""

    key: pa.Array | None
    fields: tuple[Field, ...]


def number(values: Ints) -> Value:
    return Value(decimals(values), quoted=False)


def text(values: pa.Array) -> Value:
    return Value(values, quoted=True)


def moment(milliseconds: Ints) -> Value:
    return Value(moments(milliseconds), quoted=True)
