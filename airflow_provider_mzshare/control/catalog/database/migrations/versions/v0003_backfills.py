"""Tables that come later: backfills, replacements, certificates, and commits that carry several ticks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_backfills()
    _extend_tables()
    _create_replacements()
    _create_certificates()
    _extend_commits_and_jobs()


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _defaulted(name: str, value: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default=value)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"{table}_pkey"))


def _refers(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [to], name=op.f(f"{table}_{column}_fkey"))


def _create_backfills() -> None:
    op.create_table(
        "backfills",
        _text("id"),
        _text("source_id"),
        _number("created_at"),
        _number("history_tick"),
        _text("history_upper"),
        _number("lease_epoch"),
        _text("lease_job", null=True),
        _number("lease_beat"),
        _key("backfills", "id"),
        _refers("backfills", "source_id", "sources.id"),
    )
    op.create_index("backfills_source_id", "backfills", ["source_id"])
    op.create_table(
        "backfill_tables",
        _text("backfill_id"),
        _text("table_id"),
        _number("generation"),
        sa.Column("heals", sa.Boolean(), nullable=False),
        _number("from_tick"),
        _text("from_position"),
        _number("rows"),
        _number("errors"),
        _text("data_hash"),
        _text("errors_hash"),
        _number("records"),
        _number("busy_ms"),
        _key("backfill_tables", "backfill_id", "table_id"),
        _refers("backfill_tables", "backfill_id", "backfills.id"),
        _refers("backfill_tables", "table_id", "tables.id"),
    )


def _extend_tables() -> None:
    """Columns are only ever added: SQLite would have to build a table anew that others refer to."""
    op.add_column("tables", _defaulted("next_tick", "1"))
    op.add_column("tables", _defaulted("start_tick", "1"))
    op.add_column("tables", _text("backfill_id", null=True))
    op.add_column("tables", _defaulted("since_noted", "0"))
    op.add_column("tables", _defaulted("since_noted_at", "0"))
    op.add_column("sources", _defaulted("compaction_asked", "0"))
    op.execute(
        "UPDATE tables SET next_tick = COALESCE((SELECT ticks.number + 1 FROM ticks "
        "WHERE ticks.source_id = tables.source_id AND ticks.mz_timestamp < tables.upper "
        "ORDER BY ticks.mz_timestamp DESC LIMIT 1), 1)"
    )


def _create_replacements() -> None:
    op.create_table(
        "replacements",
        _text("table_id"),
        _number("generation"),
        _text("status"),
        _text("reason", null=True),
        _text("position"),
        _defaulted("next_tick", "1"),
        _number("upper"),
        _number("since"),
        _number("rows"),
        _number("errors"),
        _text("backfill_id", null=True),
        _key("replacements", "table_id"),
        _refers("replacements", "table_id", "tables.id"),
    )
    op.create_table(
        "swaps",
        _text("table_id"),
        _number("generation"),
        _number("mz_timestamp"),
        _number("upper"),
        _key("swaps", "table_id", "generation"),
        _refers("swaps", "table_id", "tables.id"),
    )


def _create_certificates() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "certificates",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("table_id"),
        _text("source_id"),
        _number("generation"),
        _text("backfill_id"),
        _number("tick"),
        _number("mz_timestamp"),
        _number("from_tick"),
        _number("history_tick"),
        _text("start"),
        _text("history_upper"),
        _text("cutover"),
        _number("rows"),
        _number("errors"),
        _text("data_hash"),
        _text("errors_hash"),
        _text("backfill_jobs"),
        _text("ingestion_job", null=True),
        _number("created_at"),
        _key("certificates", "number"),
        _refers("certificates", "table_id", "tables.id"),
        _refers("certificates", "source_id", "sources.id"),
        _refers("certificates", "backfill_id", "backfills.id"),
    )
    op.create_index("certificates_table_id", "certificates", ["table_id"])


def _extend_commits_and_jobs() -> None:
    op.add_column("commits", _defaulted("first_timestamp", "0"))
    op.execute("UPDATE commits SET first_timestamp = mz_timestamp")
    op.add_column("jobs", _text("backfill_id", null=True))
    op.add_column("jobs", _text("ui_url", null=True))
    op.create_index("jobs_backfill", "jobs", ["backfill_id", "number"])
