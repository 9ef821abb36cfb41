"""What exists by name and what hangs on it, as typed rows: schemas, views, references, comments, settings, migrations.

Items, sources and tables themselves are in ``models``. No behaviour here either.
"""

from __future__ import annotations

from typing import Literal

from sqlalchemy import ForeignKey, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from airflow_provider_mzshare.control.catalog.database.base import COUNTED, Base
from airflow_provider_mzshare.core.ids import ItemId

ItemKind = Literal["source", "table", "subsource", "output", "progress", "view"]
"""``subsource``: an old-style output with a name of its own. ``output``: that of an old-style source whose relation it
is; it lives in HIDDEN_SCHEMA under its source's id until a migration gives it the source's name. ``progress``: an
old-style name for a source's progress."""

HIDDEN_SCHEMA = "mz_internal"
SchemaId = str


class SchemaRow(Base):
    """Names of schemas are keys, so that items refer to them; a swap gives each id the other's name."""

    __tablename__ = "schemas"

    name: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[SchemaId] = mapped_column(Text, server_default="")
    """``s1``, ``s2``, …: never reused."""
    dropped_at: Mapped[int | None]


class ViewRow(Base):
    """``query`` names what it reads by id, each as a quoted name (``FROM "u5"``)."""

    __tablename__ = "views"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    query: Mapped[str]


class ProgressRow(Base):
    """An old-style name under which a source's progress is read."""

    __tablename__ = "progress_names"

    id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), index=True)


class OutputRow(Base):
    """The output whose rows an old-style source shows under its own name."""

    __tablename__ = "outputs"

    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), primary_key=True)
    table_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("tables.id"), unique=True)


class DependencyRow(Base):
    """What each view reads. That a table depends on its source is in the table's own row."""

    __tablename__ = "dependencies"

    object_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True)
    referenced_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"), primary_key=True, index=True)


class CommentRow(Base):
    """``object_id`` is an item's or a schema's; ``column_name`` is empty for the object itself."""

    __tablename__ = "comments"

    object_id: Mapped[str] = mapped_column(primary_key=True)
    column_name: Mapped[str] = mapped_column(primary_key=True)
    comment: Mapped[str]


class SystemSettingRow(Base):
    """Flags and settings of the whole catalog, as far as they differ from their defaults."""

    __tablename__ = "system_settings"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class ReferenceRow(Base):
    """What a source could export when its upstream was last asked."""

    __tablename__ = "source_references"

    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    namespace: Mapped[str | None]
    name: Mapped[str]
    columns: Mapped[str | None]
    """A JSON list of names; None where the upstream knows none."""
    updated_at: Mapped[int]


class MigrationRow(Base):
    """One source that was migrated from the old syntax to the new, with everything that a rollback needs."""

    __tablename__ = "migrations"

    number: Mapped[int] = mapped_column(COUNTED, primary_key=True, autoincrement=True)
    source_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("sources.id"), index=True)
    state: Mapped[str]
    """``migrated``, ``rolled_back`` or ``finalized``."""
    before: Mapped[str]
    """JSON: the definitions of every object that was touched."""
    report: Mapped[str]
    """JSON: what was done to each object."""
    created_at: Mapped[int]
    ended_at: Mapped[int | None]


class StatusRow(Base):
    """A change of an object's status, for the history."""

    __tablename__ = "status_history"

    number: Mapped[int] = mapped_column(COUNTED, primary_key=True, autoincrement=True)
    occurred_at: Mapped[int]
    object_id: Mapped[ItemId] = mapped_column(Text, ForeignKey("items.id"))
    status: Mapped[str]
    error: Mapped[str | None]
    details: Mapped[str | None]

    __table_args__ = (Index("status_history_object", "object_id", "number"),)
