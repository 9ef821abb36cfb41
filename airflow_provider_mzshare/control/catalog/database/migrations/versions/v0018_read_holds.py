"""Read holds: what keeps ``since`` of a table back, by name, so that a holder finds its own again after a restart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody held anything before."""
    op.create_table(
        "read_holds",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("table_id", sa.Text(), sa.ForeignKey("tables.id"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=False),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat", sa.BigInteger(), nullable=False),
        sa.Column("limit_ms", sa.BigInteger(), nullable=False),
        sa.Column("dropped_at", sa.BigInteger(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("named", sa.Boolean(), nullable=False),
    )
    op.create_index("read_holds_table_id", "read_holds", ["table_id"])
