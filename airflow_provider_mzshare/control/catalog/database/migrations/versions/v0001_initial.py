"""The first catalog: items, sources, tables, the tick log and jobs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_items()
    _create_sources_and_tables()
    _create_collections()
    _create_ticks()
    _create_membership()
    _create_commits()
    _create_jobs()
    op.execute("INSERT INTO counters (name, value) VALUES ('item', 0)")
    op.execute("INSERT INTO schemas (name) VALUES ('public')")


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"{table}_pkey"))


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=op.f(f"{table}_{'_'.join(columns)}_key"))


def _refers(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [to], name=op.f(f"{table}_{column}_fkey"))


def _create_items() -> None:
    op.create_table("counters", _text("name"), _number("value"), _key("counters", "name"))
    op.create_table("schemas", _text("name"), _key("schemas", "name"))
    op.create_table(
        "items",
        _text("id"),
        _number("number"),
        _text("kind"),
        _text("schema_name"),
        _text("name"),
        _number("created_at"),
        _number("dropped_at", null=True),
        _key("items", "id"),
        _unique("items", "number"),
        _refers("items", "schema_name", "schemas.name"),
    )
    present = sa.text("dropped_at IS NULL")
    op.create_index(
        "items_live_name", "items", ["schema_name", "name"],
        unique=True, sqlite_where=present, postgresql_where=present,
    )  # fmt: skip


def _create_sources_and_tables() -> None:
    op.create_table(
        "sources",
        *map(_text, ("id", "spec", "settings", "incarnation", "start", "status")),
        _text("reason", null=True),
        _text("message", null=True),
        _text("desired"),
        _number("lease_epoch"),
        _text("lease_job", null=True),
        _number("lease_beat"),
        _key("sources", "id"),
        _refers("sources", "id", "items.id"),
    )
    op.create_table(
        "tables",
        *map(_text, ("id", "source_id", "spec")),
        *map(_number, ("spec_version", "generation")),
        _text("status"),
        _text("reason", null=True),
        *map(_text, ("start", "position")),
        *map(_number, ("upper", "since", "rows", "errors")),
        _key("tables", "id"),
        _refers("tables", "id", "items.id"),
        _refers("tables", "source_id", "sources.id"),
    )
    op.create_index(op.f("tables_source_id"), "tables", ["source_id"])


def _create_collections() -> None:
    op.create_table(
        "collections",
        *map(_text, ("id", "table_id")),
        _number("generation"),
        *map(_text, ("role", "path")),
        _number("created_at"),
        _key("collections", "id"),
        _unique("collections", "table_id", "generation", "role"),
        _refers("collections", "table_id", "tables.id"),
    )


def _create_ticks() -> None:
    op.create_table(
        "ticks",
        _text("source_id"),
        _number("number"),
        *map(_text, ("lower", "upper")),
        *map(_number, ("mz_timestamp", "minted_at")),
        _number("committed_at", null=True),
        _flag("committed"),
        _number("epoch"),
        _text("job_id", null=True),
        _number("attempts"),
        _text("suspect", null=True),
        _number("deaths"),
        _flag("repaired"),
        _key("ticks", "source_id", "number"),
        _unique("ticks", "source_id", "mz_timestamp"),
        _refers("ticks", "source_id", "sources.id"),
    )


def _create_membership() -> None:
    op.create_table(
        "membership",
        _text("table_id"),
        _number("joined_at"),
        _text("source_id"),
        *map(_number, ("generation", "spec_version")),
        _number("left_at", null=True),
        _text("reason", null=True),
        _key("membership", "table_id", "joined_at"),
        _refers("membership", "table_id", "tables.id"),
        _refers("membership", "source_id", "sources.id"),
    )
    current = sa.text("left_at IS NULL")
    op.create_index("membership_current", "membership", ["source_id"], sqlite_where=current, postgresql_where=current)


def _create_commits() -> None:
    op.create_table(
        "commits",
        _text("collection_id"),
        *map(_number, ("mz_timestamp", "tick", "version", "rows")),
        _text("hash"),
        _key("commits", "collection_id", "mz_timestamp"),
        _refers("commits", "collection_id", "collections.id"),
        sqlite_with_rowid=False,
    )


def _create_jobs() -> None:
    row_number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "jobs",
        sa.Column("number", row_number, autoincrement=True, nullable=False),
        *map(_text, ("id", "kind", "source_id", "state", "launcher")),
        _text("master", null=True),
        _text("host", null=True),
        _number("pid", null=True),
        sa.Column("pid_started", sa.Double(), nullable=True),
        _text("folder"),
        _number("created_at"),
        _number("started_at", null=True),
        _number("ended_at", null=True),
        _flag("stop_requested"),
        _text("error", null=True),
        _number("exit_code", null=True),
        _key("jobs", "number"),
        _unique("jobs", "id"),
        _refers("jobs", "source_id", "sources.id"),
    )
    op.create_index("jobs_source", "jobs", ["source_id", "number"])
