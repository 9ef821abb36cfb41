"""Clocks. Wall-clock time is for people to read: what must be right does not depend on it alone."""

from __future__ import annotations

import time

from sqlalchemy import BigInteger, ColumnElement, literal_column, select
from sqlalchemy.orm import Session

_DATABASE = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    # Not that of the transaction, which may have waited for a lock since it began.
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint)",
}


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def database_ms(session: Session) -> int:
    """Now, by the one clock that all who use this catalog have in common."""
    return int(session.execute(select(database_now(session.get_bind().dialect.name))).scalar_one())


def database_now(dialect: str) -> ColumnElement[int]:
    """The same, to be read with something else."""
    return literal_column(_DATABASE[dialect], BigInteger)
