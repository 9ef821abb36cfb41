"""Objects beside sources and tables: schemas with ids, views, references, comments, settings, migrations, statuses."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _extend_schemas()
    _create_objects()
    _create_settings()
    _create_history()


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _counted() -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("number", kind, autoincrement=True, nullable=False)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"{table}_pkey"))


def _refers(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [to], name=op.f(f"{table}_{column}_fkey"))


def _extend_schemas() -> None:
    op.add_column("schemas", sa.Column("id", sa.Text(), nullable=False, server_default=""))
    op.add_column("schemas", _number("dropped_at", null=True))
    op.execute(
        "UPDATE schemas SET id = 's' || (SELECT COUNT(*) FROM schemas AS other "
        "WHERE other.name = 'public' OR (schemas.name <> 'public' AND other.name <= schemas.name))"
    )
    op.execute("UPDATE schemas SET id = 's1' WHERE name = 'public'")
    op.execute("INSERT INTO counters (name, value) SELECT 'schema', COUNT(*) FROM schemas")


def _create_objects() -> None:
    op.create_table("views", _text("id"), _text("query"), _key("views", "id"), _refers("views", "id", "items.id"))
    op.create_table(
        "progress_names",
        _text("id"),
        _text("source_id"),
        _key("progress_names", "id"),
        _refers("progress_names", "id", "items.id"),
        _refers("progress_names", "source_id", "sources.id"),
    )
    op.create_index("progress_names_source_id", "progress_names", ["source_id"])
    op.create_table(
        "outputs",
        _text("source_id"),
        _text("table_id"),
        _key("outputs", "source_id"),
        _refers("outputs", "source_id", "sources.id"),
        _refers("outputs", "table_id", "tables.id"),
        sa.UniqueConstraint("table_id", name=op.f("outputs_table_id_key")),
    )
    op.create_table(
        "dependencies",
        _text("object_id"),
        _text("referenced_id"),
        _key("dependencies", "object_id", "referenced_id"),
        _refers("dependencies", "object_id", "items.id"),
        _refers("dependencies", "referenced_id", "items.id"),
    )
    op.create_index("dependencies_referenced_id", "dependencies", ["referenced_id"])


def _create_settings() -> None:
    op.create_table(
        "comments",
        _text("object_id"),
        _text("column_name"),
        _text("comment"),
        _key("comments", "object_id", "column_name"),
    )
    op.create_table("system_settings", _text("name"), _text("value"), _key("system_settings", "name"))
    op.create_table(
        "source_references",
        _text("source_id"),
        _number("number"),
        _text("namespace", null=True),
        _text("name"),
        _text("columns", null=True),
        _number("updated_at"),
        _key("source_references", "source_id", "number"),
        _refers("source_references", "source_id", "sources.id"),
    )


def _create_history() -> None:
    op.create_table(
        "migrations",
        _counted(),
        _text("source_id"),
        _text("state"),
        _text("before"),
        _text("report"),
        _number("created_at"),
        _number("ended_at", null=True),
        _key("migrations", "number"),
        _refers("migrations", "source_id", "sources.id"),
    )
    op.create_index("migrations_source_id", "migrations", ["source_id"])
    op.create_table(
        "status_history",
        _counted(),
        _number("occurred_at"),
        _text("object_id"),
        _text("status"),
        _text("error", null=True),
        _text("details", null=True),
        _key("status_history", "number"),
        _refers("status_history", "object_id", "items.id"),
    )
    op.create_index("status_history_object", "status_history", ["object_id", "number"])
