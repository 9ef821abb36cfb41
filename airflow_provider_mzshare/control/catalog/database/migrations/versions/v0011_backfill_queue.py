"""Backfills wait for an app in a queue, and those that wait together become one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("backfills", sa.Column("alone", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("backfills", sa.Column("queued_at", sa.BigInteger(), nullable=True))
    op.add_column("backfill_tables", sa.Column("asked_as", sa.Text(), nullable=False, server_default=""))
    op.execute("UPDATE backfill_tables SET asked_as = backfill_id")
    op.execute("INSERT INTO counters (name, value) VALUES ('backfills', 0)")
