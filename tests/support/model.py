"""The oracle: what a table of a topic must hold, in plain Python, without Spark, Delta or any code of ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import consume

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Record:
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def records(kafka: EmbeddedKafka, topic: str) -> list[Record]:
    """Every committed record of the topic, read once by a plain consumer."""
    return [Record(m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value()) for m in consume(kafka, topic)]


def within(records: Iterable[Record], position: Mapping[str, int]) -> list[Record]:
    """The records below a position."""
    return [r for r in records if r.offset < position.get(str(r.partition), 0)]


@dataclass(frozen=True)
class Expected:
    """Rows as Counter of tuples ``(*values, partition, offset)``; errors as a set of ``(partition, offset)``."""

    rows: Counter[tuple[Any, ...]]
    errors: frozenset[tuple[int, int]]


_JSON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "bigint": int,
    "integer": int,
    "double": (int, float),
    "text": str,
    "boolean": bool,
    "numeric(12,2)": (int, Decimal, float),
}


class Bad(Exception):
    pass


def _refuse(constant: str) -> Any:
    raise Bad(constant)


def _cell(value: Any, type_name: str) -> Any:
    if value is None:
        return None
    wanted = _JSON_TYPES[type_name]
    if not isinstance(value, wanted) or (isinstance(value, bool) and type_name != "boolean"):
        raise Bad(type_name)
    if type_name == "double":
        return float(value)
    if type_name.startswith("numeric"):
        return Decimal(str(value)).quantize(Decimal("0.01"))
    return value


def expected(
    records: Iterable[Record],
    *,
    format: str = "json",
    columns: Sequence[tuple[str, str]] = (),
    include: Sequence[str] = (),
) -> Expected:
    rows: Counter[tuple[Any, ...]] = Counter()
    errors = set()
    for record in records:
        try:
            values = _values(record, format, columns)
        except (Bad, ValueError):
            errors.add((record.partition, record.offset))
            continue
        extra = [_metadata(record, what, format) for what in include]
        rows[(*values, *extra, record.partition, record.offset)] += 1
    return Expected(rows, frozenset(errors))


def _values(record: Record, format: str, columns: Sequence[tuple[str, str]]) -> list[Any]:
    if format == "bytes":
        return [record.value]
    if not record.value:
        raise Bad("empty")
    text = record.value.decode("utf-8")
    if format == "text":
        return [text]
    value = json.loads(text, parse_constant=_refuse)
    if not columns:
        return [text]
    if not isinstance(value, dict):
        raise Bad("not an object")
    return [_cell(value.get(name), type_name) for name, type_name in columns]


def _metadata(record: Record, what: str, format: str) -> Any:
    if what == "key":
        return record.key if format == "bytes" or record.key is None else record.key.decode()
    if what == "timestamp":
        return EPOCH + timedelta(milliseconds=record.timestamp_ms)
    return {"partition": record.partition, "offset": record.offset}[what]


def difference(found: Counter[tuple[Any, ...]], wanted: Counter[tuple[Any, ...]]) -> str:
    """Empty when equal; else the first few rows too many and too few, by place."""
    extra, missing = found - wanted, wanted - found
    if not extra and not missing:
        return ""
    return (
        f"{extra.total()} rows too many, first {sorted(extra, key=lambda r: r[-2:])[:3]}; "
        f"{missing.total()} missing, first {sorted(missing, key=lambda r: r[-2:])[:3]}"
    )
