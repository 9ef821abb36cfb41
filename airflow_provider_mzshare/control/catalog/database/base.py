"""What all tables of the catalog share: names of constraints, and values as text."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import BigInteger, Integer, MetaData, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Snapshot

COUNTED = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite generates numbers only for columns of the type INTEGER."""


MOST = (1 << 63) - 1
"""The largest number that a column holds. Positions have no limit, so counts of their offsets stop here."""


class SnapshotText(TypeDecorator[Snapshot]):
    """As the commit of its rows has it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Snapshot | None, dialect: Dialect) -> str | None:
        return None if value is None else value.to_json()

    def process_result_value(self, value: Any, dialect: Dialect) -> Snapshot | None:
        return None if value is None else Snapshot.from_json(value)


class PositionText(TypeDecorator[Position]):
    """A position as its canonical JSON: equal positions are equal texts."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Position | None, dialect: Dialect) -> str | None:
        return None if value is None else value.to_json()

    def process_result_value(self, value: Any, dialect: Dialect) -> Position | None:
        return None if value is None else Position.from_json(value)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "%(table_name)s_%(column_0_N_name)s",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
            "pk": "%(table_name)s_pkey",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {int: BigInteger, str: Text}
