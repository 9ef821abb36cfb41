"""What is to be done, the same for every side: which topic, into which tables, and in batches of what size."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

COLUMNS = (
    ("id", "bigint"),
    ("customer", "text"),
    ("amount", "double"),
    ("status", "text"),
    ("created_at", "timestamptz"),
    ("note", "text"),
)


def columns_of(number: int) -> tuple[tuple[str, str], ...]:
    """Tables differ a little, as they would: the first has all columns, the next ones fewer."""
    return COLUMNS[: len(COLUMNS) - number % 4]


def values(start: int = 0) -> Iterator[bytes]:
    """Records of about 190 bytes, without an end; their ids count from ``start``."""
    rng = random.Random(7)
    number = start
    while True:
        fields = {
            "id": number,
            "customer": f"customer-{rng.randrange(5_000)}",
            "amount": rng.randrange(1_000_000) / 100,
            "status": rng.choice(("new", "paid", "shipped")),
            "created_at": f"2026-01-{rng.randrange(1, 29):02}T12:{rng.randrange(60):02}:{rng.randrange(60):02}Z",
            "note": f"note {rng.randrange(10**9):09} " + "x" * 46,
        }
        yield json.dumps(fields).encode()
        number += 1


@dataclass(frozen=True)
class Task:
    bootstrap: str
    topic: str
    records: int
    tables: int
    batch: int
    """The most records of a batch, and so of a commit."""
    folder: str
    jars: str

    def path(self, number: int) -> str:
        """Of a table."""
        return str(Path(self.folder, "tables", f"t{number}"))

    @property
    def names(self) -> list[list[str]]:
        """The columns of each table."""
        return [[name for name, _ in columns_of(number)] for number in range(self.tables)]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        return cls(**json.loads(text))
