"""A plain-Python model of the load generators: one record at a time, in whole numbers, without Arrow and numpy.

And tables as they are made from the outputs of generators.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorExportDetails, LoadGeneratorSpec
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec

OUTPUTS = ("organizations", "users", "accounts", "auctions", "bids")
EVERY = {"organizations": 8, "users": 4, "accounts": 4, "auctions": 2, "bids": 1}
REFERS = {
    ("users", "org_id"): "organizations",
    ("accounts", "org_id"): "organizations",
    ("auctions", "seller"): "users",
    ("bids", "buyer"): "users",
    ("bids", "auction_id"): "auctions",
}

_MASK = (1 << 64) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST = ["Ada", "Bo", "Chidi", "Dalia", "Emre", "Fatou", "Gita", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Milo", "Nour"]
_LAST = ["Abara", "Berg", "Costa", "Dube", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jensen", "Kaur", "Lopez"]
_KIND = ["Amber", "Blue", "Copper", "Daring", "Eager", "Fair", "Golden", "Honest", "Ivory", "Jolly", "Keen", "Lucid"]
_TRADE = ["Antiques", "Books", "Cycles", "Designs", "Estates", "Farms", "Galleries", "Holdings", "Imports", "Jewels"]
_ITEM = ("Best Pizza in Town", "City Bar Crawl", "Custom Art", "Gift Basket", "Signed Memorabilia", "Opera Tickets")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


class Model:
    """:param begin_ms: when the generator's clock began."""

    def __init__(self, spec: LoadGeneratorSpec, begin_ms: int) -> None:
        self._spec, self._begin = spec, begin_ms

    def time_ms(self, offset: int) -> int:
        return self._begin + (offset // self._spec.batch_size + 1) * self._spec.tick_interval_ms

    def row(self, partition: int, offset: int) -> dict[str, Any]:
        if self._spec.generator == "counter":
            return {"counter": offset + 1}
        if self._spec.generator == "key_value":
            return self._key_value(partition, offset)
        return self._auction(OUTPUTS[partition], offset)

    def value(self, partition: int, offset: int) -> bytes:
        """As one JSON text."""
        return as_value(self.row(partition, offset))

    def _key_value(self, partition: int, offset: int) -> dict[str, Any]:
        keys, size = self._spec.keys, self._spec.value_size
        key = offset if offset < keys else self._word(f"key:{partition}", offset) % keys
        words = -(-size // 8)
        drawn = b"".join(
            self._word(f"value:{partition}", offset * words + n).to_bytes(8, "little") for n in range(words)
        )
        return {"key": partition * keys + key, "value": "".join(_LETTERS[byte & 63] for byte in drawn[:size])}

    def _auction(self, what: str, offset: int) -> dict[str, Any]:
        born = offset // EVERY[what]
        whose = born if offset % EVERY[what] == 0 else self._word(f"{what}.id", offset) % (born + 1)
        row: dict[str, Any] = {"id": whose + 1}
        birth = whose * EVERY[what]
        for (table, column), referred in REFERS.items():
            if table == what:
                row[column] = self._word(f"{what}.{column}", whose + 1) % (birth // EVERY[referred] + 1) + 1
        return row | self._own(what, offset, whose + 1)

    def _own(self, what: str, offset: int, whose: int) -> Mapping[str, Any]:
        if what in ("organizations", "users"):
            first, last = (_KIND, _TRADE) if what == "organizations" else (_FIRST, _LAST)
            at = f"{what}.name"
            return {"name": f"{self._one(f'{at}.first', offset, first)} {self._one(f'{at}.last', offset, last)}"}
        if what == "accounts":
            return {"balance": self._word("accounts.balance", offset) % 20_000 - 10_000}
        if what == "auctions":
            end = self.time_ms(offset) + self._word("auctions.end_time", offset) % 600_000
            return {"item": self._one("auctions.item", whose, _ITEM), "end_time": _moment(end)}
        amount = self._word("bids.amount", offset) % 10_000 + 1
        return {"amount": amount, "bid_time": _moment(self.time_ms(offset))}

    def _one(self, what: str, number: int, texts: Any) -> str:
        return str(texts[self._word(what, number) % len(texts)])

    def _word(self, what: str, number: int) -> int:
        begin = int.from_bytes(hashlib.blake2b(f"{self._spec.seed}:{what}".encode(), digest_size=8).digest(), "little")
        word = (number * 0x9E3779B97F4A7C15 + begin) & _MASK
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        return word ^ (word >> 31)


def as_value(row: Mapping[str, Any]) -> bytes:
    told = {name: _text(cell) if isinstance(cell, datetime) else cell for name, cell in row.items()}
    return json.dumps(told, separators=(",", ":")).encode()


def table_of(reference: ReferenceInfo, *, without: tuple[str, ...] = (), as_text: tuple[str, ...] = ()) -> TableSpec:
    columns = reference.columns or ()
    kept = [column for column in columns if column.name not in without]
    return TableSpec(
        reference=reference.name,
        namespace=reference.namespace,
        format="none",
        columns=tuple(ColumnSpec(name=c.name, type="text" if c.name in as_text else c.type) for c in kept),
        text_columns=as_text,
        exclude_columns=without,
        details=LoadGeneratorExportDetails(
            output=reference.name, partitions=reference.partitions, columns=columns, keys=reference.keys
        ),
    )


def _moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}Z"
