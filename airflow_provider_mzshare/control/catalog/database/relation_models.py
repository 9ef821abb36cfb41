"""What the relations show and nothing else holds, as typed rows: printed statements, and counters."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from airflow_provider_mzshare.control.catalog.database.base import Base
from airflow_provider_mzshare.core.ids import ItemId


class DefinitionRow(Base):
    """The statement that makes an item, as SHOW CREATE prints it; written with every change of a definition."""

    __tablename__ = "definitions"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    create_sql: Mapped[str]
    fingerprint: Mapped[str]
    """A hash of everything that the statement was printed from. If it has not changed, neither has the statement."""


class StatisticsRow(Base):
    """A source's reads, counted where ticks are committed; of a table, what it had in generations that are gone."""

    __tablename__ = "statistics"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    messages_received: Mapped[int] = mapped_column(server_default="0")
    bytes_received: Mapped[int] = mapped_column(server_default="0")
    updates_staged: Mapped[int] = mapped_column(server_default="0")
    updates_committed: Mapped[int] = mapped_column(server_default="0")
    offset_known: Mapped[int] = mapped_column(server_default="0")
    """Of a source: where its upstream ended when it was last asked, summed over partitions."""
