"""Snapshots of upstreams whose log begins somewhere, and the tables that begin with one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """There was no such upstream before."""
    for table in ("tables", "replacements"):
        op.add_column(table, sa.Column("awaits_snapshot", sa.Boolean(), nullable=False, server_default=sa.false()))
        op.add_column(table, sa.Column("snapshot", sa.Text(), nullable=True))
    numbers = ("generation", "rows_expected", "rows_read", "taken_at")
    op.create_table(
        "snapshots",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "table_id", "backfill_id", "snapshot")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in numbers),
        sa.Column("landed_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", "table_id", name="snapshots_pkey"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="snapshots_table_id_fkey"),
    )
    op.create_index("snapshots_table_id", "snapshots", ["table_id"])
